// Package archtest holds the architecture to its word: which room may import which, where the sensitive libraries may
// stand, how large files and functions may grow. It reads the sources and builds nothing; it consists of tests alone.
//
// The table of rooms is data in rooms_test.go and stands for people in docs/architecture.md; a test holds the two
// together, so that a wall is moved in both or in none.
package archtest
