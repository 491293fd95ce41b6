// Command foreign is built for a foreign ABI (GOARCH=386) by the posture tests: a filter that knows the native one only
// must end it at its first system call.
package main

import "fmt"

func main() { fmt.Println("alive") }
