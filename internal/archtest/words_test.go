package archtest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The Docker SDK is held at the last release of its module under this name; a newer one is another module with other
// types, and takes a deliberate move of the engine room.
func TestDockerSDKStaysAtItsRelease(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\s*github\.com/docker/docker (\S+)`).FindAllStringSubmatch(string(text), -1)
	if len(found) != 1 || found[0][1] != "v28.5.2+incompatible" {
		t.Errorf("go.mod requires github.com/docker/docker as %q, want v28.5.2+incompatible", found)
	}
	if bytes.Contains(text, []byte("\nreplace ")) {
		t.Error("go.mod carries a replace directive; nobody else can build that")
	}
}

// foreignWord is a pattern with a literal that stands in whatever it matches, for a quick look.
type foreignWord struct {
	literal string
	pattern *regexp.Regexp
	why     string
}

// before is what stands before a path that begins there.
const before = `(?m)(^|[\s"'=:(,` + "`" + `])`

// foreign are words that must stand in no file. They are put together here, so that this file is none of them.
var foreign = []foreignWord{
	{"SBX" + "_", regexp.MustCompile(`\bSBX` + `_[A-Z]`), "our environment variables begin with SANDBOXD_"},
	{"/wor" + "k/", regexp.MustCompile(before + `/wor` + `k/`), "a path of one machine"},
	{"/ro" + "ot/", regexp.MustCompile(before + `/ro` + `ot/(go|\.cache)\b`), "a path of one machine"},
	{"/ho" + "me/", regexp.MustCompile(before + `/ho` + `me/[a-z]+/(go|src)\b`), "a path of one machine"},
	{"golang" + ".org", regexp.MustCompile(`(proxy|sum)\.golang\` + `.org`), "a registry: builds take what the machine is set up with"},
	{"docker" + ".io", regexp.MustCompile(`(registry-1|index)\.docker\` + `.io`), "a registry: builds take what the machine is set up with"},
	{"npmjs" + ".org", regexp.MustCompile(`registry\.npmjs\` + `.org`), "a registry: builds take what the machine is set up with"},
	{"debian" + ".org", regexp.MustCompile(`deb\.debian\` + `.org`), "a registry: builds take what the machine is set up with"},
	{"GOPRO" + "XY=", regexp.MustCompile(`GOPRO` + `XY=\S*:/` + `/`), "a registry: builds take what the machine is set up with"},
}

func (f foreignWord) in(text string) string {
	if !strings.Contains(text, f.literal) {
		return ""
	}
	return f.pattern.FindString(text)
}

func TestNoWordsOfOneMachine(t *testing.T) {
	for _, path := range files(t) {
		text, err := os.ReadFile(filepath.Join(root(t), path))
		if os.IsNotExist(err) {
			continue // somebody works here
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 1<<20 || bytes.IndexByte(text, 0) >= 0 || path == "go.sum" {
			continue
		}
		for _, f := range foreign {
			if found := f.in(string(text)); found != "" {
				line := 1 + strings.Count(string(text[:strings.Index(string(text), found)]), "\n")
				t.Errorf("%s:%d mentions %q: %s", path, line, strings.TrimSpace(found), f.why)
			}
		}
	}
}

func TestForeignWordsAreSeen(t *testing.T) {
	for _, line := range []string{"SBX" + "_HOST=1", "cd /wor" + "k/main", `"/wor` + `k/x"`, "GOPRO" + "XY=https:/" + "/host", "proxy.golang" + ".org"} {
		if !slices.ContainsFunc(foreign, func(f foreignWord) bool { return f.in("x\n"+line) != "" }) {
			t.Errorf("%q passes", line)
		}
	}
	for _, line := range []string{"/workspace/x", "dir + \"upper/work/\"", "SANDBOXD_X", "lower/wor" + "k/upper", "/home/job/.cache"} {
		for _, f := range foreign {
			if f.in("x\n"+line) != "" {
				t.Errorf("%q is taken for %s", line, f.why)
			}
		}
	}
}

var (
	rowPattern = regexp.MustCompile("(?m)^\\|([^|]*`[^|]*)\\|([^|]*)\\|([^|]*)\\|$")
	namedRoom  = regexp.MustCompile("`([a-z/-]+)`")
)

// The document holds the same table: a wall is moved in both or in none.
func TestDocumentMirrorsTheTable(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "docs/architecture.md"))
	if os.IsNotExist(err) {
		t.Fatal("docs/architecture.md is missing: the table of rooms has no mirror")
	}
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Rooms\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("docs/architecture.md has no section Rooms")
	}
	listed := map[string]string{}
	for _, m := range rowPattern.FindAllStringSubmatch(section, -1) {
		for _, name := range namedRoom.FindAllStringSubmatch(m[1], -1) {
			if _, twice := listed[name[1]]; twice {
				t.Errorf("the document lists %s twice", name[1])
			}
			listed[name[1]] = strings.TrimSpace(m[3])
		}
	}
	var known []string
	for _, r := range rooms {
		if _, ok := listed[r.folder]; ok {
			known = append(known, r.shortName())
		}
	}
	for _, r := range rooms {
		cell, ok := listed[r.folder]
		_, err := os.Stat(filepath.Join(root(t), r.folder))
		switch {
		case !ok && err == nil:
			t.Errorf("the document's table lacks %s", r.folder)
		case ok && !sameWalls(r, cell, known):
			t.Errorf("the document lets %s import %q, the table %v", r.folder, cell, r.may)
		}
		delete(listed, r.folder)
	}
	delete(listed, "docs")
	for name := range listed {
		t.Errorf("the document lists %s, the table does not", name)
	}
}

// sameWalls compares a cell of the document with the table. "none" and an empty cell are no import; cmd/sandboxd's "all
// but client" is spelt out in the table. Rooms that the document does not know do not count.
func sameWalls(r room, cell string, known []string) bool {
	if r.folder == "cmd/sandboxd" {
		return cell == "all but client" && !slices.Contains(r.may, "client")
	}
	var want []string
	for _, m := range r.may {
		if slices.Contains(known, m) {
			want = append(want, m)
		}
	}
	if cell == "none" || cell == "" {
		return len(want) == 0
	}
	said := strings.Split(strings.ReplaceAll(cell, " ", ""), ",")
	slices.Sort(said)
	slices.Sort(want)
	return slices.Equal(said, want)
}
