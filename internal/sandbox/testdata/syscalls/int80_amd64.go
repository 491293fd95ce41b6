package main

// int80 makes a system call by the i386 ABI.
func int80(nr, a, b, c uintptr) uintptr
