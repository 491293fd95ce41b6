package archtest_test

import (
	"strings"
)

// anything stands for every package of the module.
const anything = "*"

// room is one line of the table: a folder with all below it, and the internal packages it may import beside its own.
type room struct {
	folder string
	may    []string // folders of rooms; "internal/" is left out
}

// rooms is the table, the narrower folder before the one it lies in. docs/architecture.md mirrors it; a room whose folder
// is not there yet may be missing in the document, and with it the leave to import it.
var rooms = []room{
	{"cmd/sandboxd", []string{"api", "job", "envelope", "admission", "store", "scheduler", "runner", "sandbox", "callerfs", "engine", "wire", "supervise", "results", "server", "config", "budget", "netpolicy", "netpolicy/proxy", "audit"}},
	{"cmd/sbx", []string{"client", "api"}},
	{"cmd/sbx-init", []string{"supervise", "wire"}},
	{"api", nil},
	{"client", []string{"api"}},
	{"internal/job", nil},
	{"internal/netpolicy/proxy", []string{"job", "netpolicy"}},
	{"internal/netpolicy", []string{"job"}},
	{"internal/envelope", []string{"job", "budget", "netpolicy"}},
	{"internal/budget", []string{"job"}},
	{"internal/admission", []string{"job", "envelope", "budget", "netpolicy"}},
	{"internal/store", []string{"job", "envelope", "budget", "netpolicy"}},
	{"internal/scheduler", []string{"job", "admission", "store", "envelope", "budget"}},
	{"internal/runner", []string{"job", "envelope", "budget", "netpolicy/proxy", "sandbox", "results", "wire"}},
	{"internal/sandbox", []string{"job", "envelope", "engine", "wire"}},
	{"internal/callerfs", nil},
	{"internal/engine", nil},
	{"internal/wire", nil},
	{"internal/supervise", []string{"wire"}},
	{"internal/results", []string{"job"}},
	{"internal/audit", []string{"job"}},
	{"internal/server", []string{"api", "job", "admission", "store"}},
	{"internal/config", []string{"job", "envelope", "budget", "netpolicy"}},
	{"internal/archtest", nil},
	{"images", nil},
	{"test", []string{anything}},
}

// library says who may import a library or sensitive part of the standard one, and why it matters.
type library struct {
	prefix   string
	only     []string // rooms that may; nil: all but those of never
	never    []string
	testsToo bool // tests are held to it as well
	why      string
}

var libraries = []library{
	{prefix: "github.com/docker/", only: []string{"internal/engine"}, testsToo: true, why: "the SDK's types would spread, and its client can do what a job must never have"},
	{prefix: "modernc.org/sqlite", only: []string{"internal/store"}, why: "no *sql.Tx leaves the store"},
	{prefix: "database/sql", only: []string{"internal/store"}, why: "no *sql.Tx leaves the store"},
	{prefix: "github.com/BurntSushi/toml", only: []string{"internal/config", "cmd/sbx", "api"}, why: "files are read at the edges"},
	{prefix: "github.com/urfave/cli", only: []string{"cmd/sandboxd", "cmd/sbx"}, why: "flags are read by mains"},
	{prefix: "github.com/rs/zerolog", never: []string{"internal/job", "internal/envelope", "internal/admission", "internal/wire", "internal/supervise", "internal/budget", "internal/netpolicy", "cmd/sbx-init", "api", "client"}, why: "pure rooms and what runs in a container do not log"},
	{prefix: "os/exec", never: []string{"internal/supervise", "cmd/sbx-init", "internal/wire", "internal/server", "internal/runner", "internal/results"}, why: "PID 1 forks by itself, and the daemon starts no program on behalf of a job"},
	{prefix: "net/http", never: []string{"internal/wire", "internal/supervise", "internal/runner", "cmd/sbx-init", "internal/scheduler", "internal/results"}, why: "what stands in a container or beside it speaks frames"},
	{prefix: "math/rand", only: []string{"client", "test"}, why: "names and keys come from crypto/rand; jitter may be drawn"},
}

// banned names of packages and folders: drawers for what has no place.
var banned = []string{"util", "utils", "common", "helper", "helpers", "manager", "managers", "misc"}

// roomOf returns the room a folder of the module lies in.
func roomOf(dir string) (room, bool) {
	for _, r := range rooms {
		if dir == r.folder || strings.HasPrefix(dir, r.folder+"/") {
			return r, true
		}
	}
	return room{}, false
}

// allows reports whether a package of the room may import the package in dir.
func (r room) allows(dir string) bool {
	if own, ok := roomOf(dir); ok && own.folder == r.folder {
		return true
	}
	for _, m := range r.may {
		if m == anything || roomNamed(m) == dir {
			return true
		}
	}
	return false
}

// shortName is how the table and the document name a room among those one may import.
func (r room) shortName() string { return strings.TrimPrefix(r.folder, "internal/") }

// roomNamed gives the folder of a room as the table names it.
func roomNamed(short string) string {
	switch short {
	case "api", "client":
		return short
	}
	return "internal/" + short
}
