package enginetest

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sandboxd/internal/engine"
)

// ProgramPath is where Program lies in test images.
const ProgramPath = "/bin/busybox"

var program = sync.OnceValues(buildProgram)

// Program is a static program that understands `sh -c SCRIPT`: the host's busybox when it is static, else a small Go
// program built here, which knows the scripts `exit N`, `sleep N` and `eat` only.
func Program(t testing.TB) (_ []byte, isBusybox bool) {
	t.Helper()
	if b, err := os.ReadFile("/bin/busybox"); err == nil && isStatic(b) {
		return b, true
	}
	b, err := program()
	if err != nil {
		t.Fatalf("no static /bin/busybox, and the program in its place cannot be built: %v", err)
	}
	return b, false
}

func isStatic(b []byte) bool {
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		return false
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return false
		}
	}
	return true
}

const programSource = `package main

import ("os"; "strconv"; "strings"; "time")

func main() {
	words := strings.Fields(os.Args[len(os.Args)-1])
	n, _ := strconv.Atoi(words[len(words)-1])
	var eaten [][]byte
	for words[0] == "eat" {
		b := make([]byte, 1<<20)
		for i := range b { b[i] = 1 }
		eaten = append(eaten, b)
	}
	if words[0] == "sleep" { time.Sleep(time.Duration(n) * time.Second) }
	if words[0] == "exit" { os.Exit(n) }
}
`

func buildProgram() ([]byte, error) {
	dir, err := os.MkdirTemp("", "sandboxd-program")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(programSource), 0o600); err != nil {
		return nil, err
	}
	build := exec.Command("go", "build", "-o", "program", "main.go")
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(filepath.Join(dir, "program"))
}

// ScriptHook plays the scripts `exit N` and `sleep N` of a Sample container on a Fake.
func ScriptHook(_ string, c engine.Container) (int, func(context.Context) int, error) {
	argv := append(append([]string(nil), c.Entrypoint...), c.Cmd...)
	script := argv[len(argv)-1]
	if code, isExit := strings.CutPrefix(script, "exit "); isExit {
		n, err := strconv.Atoi(code)
		return 0, func(context.Context) int { return n }, err
	}
	return 0, func(ctx context.Context) int { <-ctx.Done(); return 137 }, nil
}
