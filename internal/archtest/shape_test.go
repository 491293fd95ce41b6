package archtest_test

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

const (
	maxFileLines = 500
	maxFuncLines = 100
)

func TestEveryPackageHasOneDocComment(t *testing.T) {
	docs := map[string][]string{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		if _, seen := docs[s.dir]; !seen {
			docs[s.dir] = nil
		}
		if s.file.Doc.Text() != "" {
			docs[s.dir] = append(docs[s.dir], s.path)
		}
	}
	for dir, in := range docs {
		if len(in) != 1 {
			t.Errorf("%s: a package has one doc comment, this one has %d: %v", dir, len(in), in)
		}
	}
}

func TestFilesAndFunctionsStaySmall(t *testing.T) { hold(t, sizeFindings) }

func sizeFindings(s source) (out []string) {
	if s.lines > maxFileLines {
		out = append(out, fmt.Sprintf("%s: %d lines, a file stops at %d; split it by concern", s.path, s.lines, maxFileLines))
	}
	for _, f := range s.functions() {
		if n := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1; n > maxFuncLines {
			out = append(out, fmt.Sprintf("%s: %s has %d lines, a function stops at %d", s.line(f), f.Name.Name, n, maxFuncLines))
		}
	}
	return out
}

func TestNoDrawersForWhatHasNoPlace(t *testing.T) { hold(t, nameFindings) }

func nameFindings(s source) (out []string) {
	for _, name := range append(strings.Split(s.dir, "/"), strings.TrimSuffix(s.pkg, "_test")) {
		if slices.Contains(banned, name) {
			out = append(out, fmt.Sprintf("%s: nothing is called %q; name it after what it does", s.path, name))
		}
	}
	return out
}

func TestNothingStartsByItself(t *testing.T) { hold(t, initFindings) }

// initFindings: an init() runs whether anybody wants it or not. The one use that has no other way is to keep the main
// goroutine on the main thread.
func initFindings(s source) (out []string) {
	for _, f := range s.functions() {
		if !s.test && f.Recv == nil && f.Name.Name == "init" && !locksMainThread(f) {
			out = append(out, fmt.Sprintf("%s: an init() function; let main call it", s.line(f)))
		}
	}
	return out
}

func locksMainThread(f *ast.FuncDecl) bool {
	if len(f.Body.List) != 1 {
		return false
	}
	e, ok := f.Body.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	c, ok := e.X.(*ast.CallExpr)
	return ok && isCall(c, "runtime", "LockOSThread")
}

func isCall(c *ast.CallExpr, pkg string, names ...string) bool {
	sel, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg && slices.Contains(names, sel.Sel.Name)
}

// heavy are system calls that only Linux has and that change a process, its mounts or its rights.
var heavy = []string{"Mount", "Unmount", "MoveMount", "OpenTree", "MountSetattr", "Fsopen", "Fsmount", "Setns", "Unshare", "PivotRoot",
	"Capset", "Prctl", "SchedSetaffinity", "PidfdOpen", "Openat2", "Faccessat2", "Setresuid", "Setresgid"}

func TestLinuxOnlyCallsSitInLinuxFiles(t *testing.T) { hold(t, linuxFindings) }

func linuxFindings(s source) (out []string) {
	if s.test || strings.HasSuffix(s.path, "_linux.go") || strings.HasPrefix(s.dir, "test/") || s.constrained() {
		return nil
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok && isCall(c, "unix", heavy...) {
			out = append(out, fmt.Sprintf("%s: a Linux-only system call outside of a _linux.go file", s.line(c)))
		}
		return true
	})
	return out
}
