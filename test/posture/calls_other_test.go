//go:build !amd64

package posture_test

// plainCalls are written with the numbers of amd64.
var plainCalls map[int][]call
