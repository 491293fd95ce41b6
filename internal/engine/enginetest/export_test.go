package enginetest

// BuildProgram builds the program that takes busybox's place.
var BuildProgram = buildProgram
