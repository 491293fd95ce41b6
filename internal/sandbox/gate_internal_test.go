package sandbox

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/engine"
)

// TestNoneOfIsTheComplement: the alternatives hold for exactly the values that are not named, whatever stands in the
// upper half of the register.
func TestNoneOfIsTheComplement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Uint32(), 1, 6).Draw(t, "values")
		v := rapid.OneOf(rapid.Uint32(), rapid.SampledFrom(values), rapid.Custom(func(t *rapid.T) uint32 {
			return rapid.SampledFrom(values).Draw(t, "near") ^ 1<<rapid.IntRange(0, 31).Draw(t, "bit")
		})).Draw(t, "value")
		register := rapid.Uint64().Draw(t, "garbage")<<32 | uint64(v)
		allowed := 0
		for _, a := range noneOf(0, values...) {
			if len(a) != 1 {
				t.Fatal("more than one condition on an argument")
			}
			if register&a[0].Value == a[0].ValueTwo {
				allowed++
			}
		}
		if want := !slices.Contains(values, v); (allowed == 1) != want || allowed > 1 {
			t.Fatalf("%x among %x: %d alternatives hold", v, values, allowed)
		}
	})
}

// TestAlternativesLookAtEachArgumentOnce: runc would join two conditions on one argument by OR.
func TestAlternativesLookAtEachArgumentOnce(t *testing.T) {
	for _, r := range conditionalRules {
		for _, a := range r.when {
			seen := map[uint]bool{}
			for _, c := range a {
				if seen[c.Index] {
					t.Errorf("%v: two conditions on argument %d", r.names, c.Index)
				}
				seen[c.Index] = true
			}
		}
	}
}

func TestEveryFieldOfAContainerIsCompared(t *testing.T) {
	base := engine.Container{MaskedPaths: []string{}, ReadonlyPaths: []string{}}
	typ := reflect.TypeFor[engine.Container]()
	for i := range typ.NumField() {
		got := base
		f := reflect.ValueOf(&got).Elem().Field(i)
		switch f.Kind() {
		case reflect.String:
			f.SetString("other")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int, reflect.Int64:
			f.SetInt(7)
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.Map:
			f.Set(reflect.MakeMap(f.Type()))
			f.SetMapIndex(reflect.ValueOf("k"), reflect.ValueOf("v"))
		default:
			t.Fatalf("%s: kind %s", typ.Field(i).Name, f.Kind())
		}
		found := containerFindings(base, got, engine.Image{})
		if len(found) != 1 || !strings.Contains(found[0], typ.Field(i).Name) {
			t.Errorf("%s: %v", typ.Field(i).Name, found)
		}
	}
	if found := containerFindings(base, base, engine.Image{}); len(found) > 0 {
		t.Error(found)
	}
}

func TestProcessFindings(t *testing.T) {
	good := "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\n" +
		"NoNewPrivs:\t1\nSeccomp:\t2\nUid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\nGroups:\t1000 1001 1002 1003 1004 1005 1006 1007 \nNSpid:\t77\t1\n"
	s, err := parseStatus(good)
	if err != nil {
		t.Fatal(err)
	}
	if found := processFindings("init", s, 1000); len(found) > 0 {
		t.Fatal(found)
	}
	if s.last("NSpid") != 1 || s.last("None") != -1 {
		t.Error("NSpid")
	}
	for _, c := range [][2]string{
		{"CapBnd:\t0000000000000000", "CapBnd:\t0000000000000400"}, {"CapAmb:\t0000000000000000\n", ""}, {"NoNewPrivs:\t1", "NoNewPrivs:\t0"},
		{"Seccomp:\t2", "Seccomp:\t0"}, {"Seccomp:\t2", "Seccomp:\t1"}, {"Uid:\t1000\t1000", "Uid:\t1000\t0"}, {"Gid:\t1000", "Gid:\t0"},
		{" 1007 ", " 1007 0 "}, {"Groups:\t1000 ", "Groups:\t"},
	} {
		bad, err := parseStatus(strings.Replace(good, c[0], c[1], 1))
		if err != nil {
			t.Fatal(err)
		}
		if found := processFindings("init", bad, 1000); len(found) != 1 {
			t.Errorf("%q: %v", c[1], found)
		}
	}
}

func TestParsersRefuseWhatTheyCannotRead(t *testing.T) {
	if _, err := parseStatus("no colon\n"); err == nil {
		t.Error("status")
	}
	for _, line := range []string{"1 2 3\n", "36 35 98:0 / / rw - ext3 /dev/root\n", "36 35 98:0 / / rw\n"} {
		if _, err := parseMountinfo(line); err == nil {
			t.Errorf("mountinfo %q", line)
		}
	}
	if _, err := parseCgroup("3\n"); err == nil {
		t.Error("cgroup")
	}
	if _, err := parseLimits("Max\n"); err == nil {
		t.Error("limits")
	}
}

func TestMountinfoIsUnescaped(t *testing.T) {
	m, err := parseMountinfo(`36 35 98:0 /a\040b /c\134d rw,noatime shared:1 master:2 - ext4 /dev/root rw,size=8k` + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if m[0].root != "/a b" || m[0].target != `/c\d` || len(m[0].propagation) != 2 || m[0].super["size"] != "8k" {
		t.Errorf("%+v", m[0])
	}
}

// liveMountinfo is of a container this code made (engine 20.10, cgroup v1).
func liveMountinfo(t *testing.T) ([]mountLine, engine.Container, func(string) bool) {
	t.Helper()
	text, err := os.ReadFile("testdata/mountinfo.txt")
	if err != nil {
		t.Fatal(err)
	}
	live, err := parseMountinfo(string(text))
	if err != nil {
		t.Fatal(err)
	}
	masked := map[string]bool{}
	for _, m := range live {
		masked[m.target] = true
	}
	c := engine.Container{
		MaskedPaths: maskedPaths, ReadonlyPaths: readonlyPaths,
		Tmpfs: map[string]string{
			PathTmp: tmpfs("noexec", 8<<20, 1000, 1900000000, "1777"), PathHome: tmpfs("exec", 8<<20, 1000, 1900000000, "0700"),
			PathOut: tmpfs("noexec", 8<<20, 1000, 1900000000, "0755"), PathRun: tmpfs("noexec", 1<<20, 1000, 1900000000, "0755"),
		},
		Binds: []engine.Bind{{Target: PathInit}, {Target: PathSbx}, {Target: PathSlot}},
	}
	return live, c, func(p string) bool { return masked[p] }
}

func TestMountFindings(t *testing.T) {
	live, c, present := liveMountinfo(t)
	if found := mountFindings(c, live, present, true); len(found) > 0 {
		t.Fatal(found)
	}
	at := func(target string) int {
		return slices.IndexFunc(live, func(m mountLine) bool { return m.target == target })
	}
	edit := func(target string, change func(*mountLine)) func([]mountLine) []mountLine {
		return func(l []mountLine) []mountLine { change(&l[at(target)]); return l }
	}
	without := func(o string) func(*mountLine) {
		return func(m *mountLine) {
			m.options = slices.DeleteFunc(slices.Clone(m.options), func(x string) bool { return x == o })
		}
	}
	for name, change := range map[string]func([]mountLine) []mountLine{
		"shared":          edit("/", func(m *mountLine) { m.propagation = []string{"shared:1"} }),
		"slave":           edit("/", func(m *mountLine) { m.propagation = []string{"master:1"} }),
		"writable root":   edit("/", without("ro")),
		"writable bind":   edit(PathSlot, without("ro")),
		"suid":            edit(PathSbx, without("nosuid")),
		"exec tmp":        edit(PathTmp, without("noexec")),
		"bigger tmp":      edit(PathTmp, func(m *mountLine) { m.super = map[string]string{"size": "9k", "nr_inodes": "1000"} }),
		"tmp of the host": edit(PathTmp, func(m *mountLine) { m.root = "/evil" }),
		"tmp on ext4":     edit(PathTmp, func(m *mountLine) { m.fstype = "ext4" }),
		"unmasked":        edit("/proc/kallsyms", func(m *mountLine) { m.root = "/zero" }),
		"mask is gone":    func(l []mountLine) []mountLine { i := at("/proc/keys"); return slices.Delete(slices.Clone(l), i, i+1) },
		"proc/sys rw":     edit("/proc/sys", without("ro")),
		"one more": func(l []mountLine) []mountLine {
			return append(l, mountLine{target: "/var", options: []string{"nosuid"}})
		},
		"on top":          func(l []mountLine) []mountLine { return append(l, l[at(PathHome)]) },
		"writable cgroup": edit("/sys/fs/cgroup/memory", without("ro")),
		"a false cgroup": func(l []mountLine) []mountLine {
			return append(l, mountLine{target: "/sys/fs/cgroup/x", fstype: "ext4", options: []string{"ro", "nosuid", "nodev", "noexec"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			if found := mountFindings(c, change(slices.Clone(live)), present, true); len(found) == 0 {
				t.Error("nothing found")
			}
		})
	}
}

func TestUIDsAreNeverSharedAndFreedByTheirSlotOnly(t *testing.T) {
	u := newUIDs(1000, 64, 8)
	u.hold(1019, "old") // a group place of the third uid
	u.hold(5, "outside")
	got := map[uint32]string{}
	for i := range 7 {
		slot := string(rune('a' + i))
		id, err := u.take(slot)
		if err != nil || got[id] != "" || id == 1016 || (id-1000)%8 != 0 {
			t.Fatalf("uid %d %v", id, err)
		}
		got[id] = slot
	}
	if _, err := u.take("x"); err != ErrNoUID {
		t.Errorf("got %v", err)
	}
	u.free(1016, "other")
	if _, err := u.take("x"); err != ErrNoUID {
		t.Error("freed by another slot")
	}
	u.free(1016, "old")
	if id, err := u.take("x"); err != nil || id != 1016 {
		t.Errorf("got %d %v", id, err)
	}
	u.free(1016, "old") // late and again
	if _, err := u.take("y"); err != ErrNoUID {
		t.Error("freed twice by an old owner")
	}
}

func TestFreedUIDRestsAsLongAsPossible(t *testing.T) {
	u := newUIDs(501000, 64, 8) // no other test's: the locks are the host's
	a, _ := u.take("a")
	u.free(a, "a")
	for range 7 {
		if b, _ := u.take("b"); b == a {
			t.Fatal("given out again at once")
		}
	}
}

func TestCoresAreSpread(t *testing.T) {
	c := &cores{usable: []int{2, 3, 5, 7}, load: make([]int, 4)}
	if got := c.take(1); !slices.Equal(got, []int{2}) {
		t.Error(got)
	}
	if got := c.take(2001); !slices.Equal(got, []int{3, 5, 7}) {
		t.Error(got)
	}
	all := c.take(99000)
	if !slices.Equal(all, []int{2, 3, 5, 7}) {
		t.Error(all)
	}
	c.release(all)
	c.release([]int{3, 5, 7})
	if got := c.take(1000); !slices.Equal(got, []int{3}) {
		t.Error(got)
	}
	c.release([]int{9})
}

func TestCheckIDs(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		ok               bool
	}{
		{"nothing near", "/etc/subuid", "alice:100000:65536\n", true},
		{"meets", "/etc/subuid", "alice:100000:65536\nbob:1900000000:1\n", false},
		{"ends before", "/etc/subuid", "bob:1899999990:10\n", true},
		{"reaches in", "/etc/subgid", "bob:1899999990:11\n", false},
		{"begins after", "/etc/subgid", "bob:1900065536:10\n", true},
		{"covers", "/etc/subuid", "bob:1000000000:2000000000\n", false},
		{"huge", "/etc/subuid", "bob:4294967295:4294967295\n", true},
		{"account", "/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nldap:x:1900000001:100::/:/bin/sh\n", false},
		{"account's group", "/etc/passwd", "ldap:x:100:1900000001::/:/bin/sh\n", false},
		{"group", "/etc/group", "g:x:1900065535:\n", false},
		{"comment and old ways", "/etc/group", "# text\n+::::\n\n", true},
		{"cannot be read", "/etc/subuid", "bob:many:1\n", false},
		{"too short", "/etc/passwd", "bob:x\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := checkIDs(c.file, strings.NewReader(c.text), 1900000000, 65536)
			if (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestIsCgroupOf(t *testing.T) {
	id := strings.Repeat("0a", 32)
	for _, c := range []struct {
		path, parent string
		want         bool
	}{
		{"/sandboxd-1/" + id, "/sandboxd-1", true}, {"/docker/" + id, "/sandboxd-1", false}, {"/sandboxd-1/" + id + "/job", "/sandboxd-1", false},
		{"/sandboxd.slice/sandboxd-1.slice/docker-" + id + ".scope", "sandboxd-1.slice", true},
		{"/system.slice/docker-" + id + ".scope", "sandboxd-1.slice", false}, {"/", "/", false}, {"", "/sandboxd-1", false},
	} {
		if got := isCgroupOf(c.path, c.parent, id); got != c.want {
			t.Errorf("%s below %s: %t", c.path, c.parent, got)
		}
	}
	if got := slicePath("a-b-c.slice"); got != "/a.slice/a-b.slice/a-b-c.slice" {
		t.Error(got)
	}
}
