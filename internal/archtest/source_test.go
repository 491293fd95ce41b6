package archtest_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "sandboxd"

// source is one Go file of the module.
type source struct {
	path    string // from the module's root, with slashes
	dir     string
	test    bool
	pkg     string
	lines   int
	imports []string
	file    *ast.File
	fset    *token.FileSet
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// outside says which folders are none of the module's own sources; tools is a module of its own.
func outside(name string) bool {
	return name == "bin" || name == "testdata" || name == "tools" || strings.HasPrefix(name, ".") && name != ".ci"
}

// files lists all files of the module.
func files(t *testing.T) []string {
	t.Helper()
	var out []string
	top := root(t)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != top && outside(d.Name()):
			return fs.SkipDir
		case d.Type().IsRegular():
			rel, err := filepath.Rel(top, path)
			if err != nil {
				return err
			}
			out = append(out, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var parsed struct {
	once    sync.Once
	sources []source
}

// sources parses every Go file of the module, once.
func sources(t *testing.T) []source {
	t.Helper()
	parsed.once.Do(func() {
		for _, path := range files(t) {
			if strings.HasSuffix(path, ".go") {
				text, err := os.ReadFile(filepath.Join(root(t), path))
				if err != nil {
					t.Fatal(err)
				}
				parsed.sources = append(parsed.sources, parse(t, path, text))
			}
		}
	})
	if len(parsed.sources) < 50 {
		t.Fatalf("only %d sources found: the walk misses the module", len(parsed.sources))
	}
	return parsed.sources
}

func parse(t *testing.T, path string, text []byte) source {
	t.Helper()
	s := source{path: path, dir: filepath.ToSlash(filepath.Dir(path)), test: strings.HasSuffix(path, "_test.go"), fset: token.NewFileSet()}
	var err error
	if s.file, err = parser.ParseFile(s.fset, path, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
		t.Fatal(err)
	}
	s.pkg, s.lines = s.file.Name.Name, bytes.Count(text, []byte("\n"))
	for _, i := range s.file.Imports {
		name, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		s.imports = append(s.imports, name)
	}
	return s
}

// line is where a node begins, for messages.
func (s source) line(n ast.Node) string {
	return s.path + ":" + strconv.Itoa(s.fset.Position(n.Pos()).Line)
}

func (s source) functions() (out []*ast.FuncDecl) {
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			out = append(out, f)
		}
	}
	return out
}

// constrained reports whether a file carries a build constraint of its own.
func (s source) constrained() bool {
	for _, g := range s.file.Comments {
		if g.Pos() > s.file.Package {
			return false
		}
		for _, c := range g.List {
			if strings.HasPrefix(c.Text, "//go:build ") {
				return true
			}
		}
	}
	return false
}
