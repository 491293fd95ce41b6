package posture_test

import (
	"archive/tar"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandboxd/test/harness"
)

// prefix of the images' names; with the process id, for two runs may meet.
var prefix = fmt.Sprintf("posture-%d/", os.Getpid())

// volumes by what becomes of them.
var (
	refusedVolumes  = []string{"/data", "/proc", "/dev/shm", "/sbx", "/etc", "/", "/workspace/x", "/sys/fs/cgroup", "/home"}
	shadowedVolumes = []string{"/srv/x", "/var/lib/deep/er", "/opt"}
)

// linkedPlaces are where our mounts go; each is made a link to somewhere on the host.
var linkedPlaces = []string{"dev", "proc", "sys", "etc", "tmp", "run", "out", "home", "home/job", "workspace", "data", "mnt", "mnt/probe", "sbx", "sbx/bin", "sbx/slot", "sbx/bin/sbx-init", "etc/resolv.conf"}

const canaryPlace = "/var/lib/sandboxd-posture-canary"

func imageName(what string) string {
	clean := strings.Map(func(r rune) rune {
		if r == '/' || r == '-' {
			return '.'
		}
		return r
	}, strings.Trim(what, "/"))
	if clean == "" {
		clean = "root"
	}
	return prefix + clean
}

func hostileImages() []image {
	out := []image{
		{name: imageName("suid"), layers: nil}, // filled by loadImages: it needs the probe
		{name: imageName("user0"), config: map[string]any{"User": "0"}},
		{name: imageName("usernames"), config: map[string]any{"User": "0"}, layers: [][]file{rootNames(false)}},
		{name: imageName("userhuge"), config: map[string]any{"User": "4294967296:4294967296"}},
		{name: imageName("username"), config: map[string]any{"User": "evil:root"}, layers: [][]file{rootNames(true)}},
		{name: imageName("config"), config: map[string]any{
			"Env":        []string{"LD_PRELOAD=/evil.so", "GODEBUG=gctrace=1", "PATH=/evil", "HOME=/root", "GOMEMLIMIT=1", "SANDBOXD_JOB=x", "HOSTNAME=evil"},
			"Entrypoint": []string{"/probe", "status"}, "StopSignal": "SIGSTOP", "WorkingDir": "/proc/self/fd/8", "OnBuild": []string{"RUN evil"},
			"Healthcheck":  map[string]any{"Test": []string{"CMD", "/probe", "ids"}, "Interval": 1000000},
			"Labels":       map[string]string{"sandboxd.job": "x", "sandboxd.instance": "y", "sandboxd.slot": "z"},
			"ExposedPorts": map[string]any{"22/tcp": map[string]any{}}, "Hostname": "evil", "Domainname": "evil", "Tty": true, "OpenStdin": true,
		}},
		{name: imageName("shadowed"), config: map[string]any{"Volumes": volumeSet(shadowedVolumes...)}},
		{name: imageName("labels"), config: map[string]any{"Labels": manyLabels(100000)}},
		{name: imageName("env"), config: map[string]any{"Env": []string{"BIG=" + strings.Repeat("x", 1<<20)}}},
		{name: imageName("arm"), arch: "arm64"},
		{name: imageName("twolayers"), layers: [][]file{{folder("sbx/", 0o755), folder("sbx/bin/", 0o755)}, {regular(".wh.sbx", 0o644, nil)}, {link("sbx", canaryPlace)}}},
		{name: imageName("through"), layers: [][]file{{link("x", canaryPlace), link("sbx", "x")}}},
		{name: imageName("dots"), layers: [][]file{{link("./tmp/../sbx", canaryPlace)}}},
		{name: imageName("hard"), layers: [][]file{{regular("secret", 0o644, []byte("x")), hardLink("etc/hosts", "secret"), hardLink("sbx/bin/sbx-init", "secret")}}},
		{name: imageName("fifo"), layers: [][]file{{{tar.Header{Typeflag: tar.TypeFifo, Name: "workspace", Mode: 0o666}, nil}}}},
		{name: imageName("device"), layers: [][]file{{{tar.Header{Typeflag: tar.TypeBlock, Name: "sda", Mode: 0o666, Devmajor: 8}, nil}}}},
	}
	for _, v := range refusedVolumes {
		out = append(out, image{name: imageName("volume" + v), config: map[string]any{"Volumes": volumeSet(v)}})
	}
	for _, at := range linkedPlaces {
		var parents []file
		for i, c := range at {
			if c == '/' {
				parents = append(parents, folder(at[:i+1], 0o755))
			}
		}
		out = append(out, image{name: imageName("link/" + at), layers: [][]file{append(parents, link(at, canaryPlace))}})
	}
	return out
}

// rootNames names root after every slot uid and puts it into group 0 by those names; and names group 0 after every gid.
func rootNames(groups bool) []file {
	var passwd, group strings.Builder
	var members []string
	passwd.WriteString("root:x:0:0:root:/root:/bin/sh\nevil:x:0:0:evil:/root:/bin/sh\n")
	for uid := firstUID; uid < firstUID+slotUIDs; uid += slotStride {
		fmt.Fprintf(&passwd, "%d:x:0:0:evil:/root:/bin/sh\n", uid)
		fmt.Fprintf(&passwd, "u%d:x:%d:0:evil:/root:/bin/sh\n", uid, uid)
		if groups {
			fmt.Fprintf(&group, "%d:x:0:\n", uid)
		}
		members = append(members, "u"+strconv.Itoa(int(uid)), strconv.Itoa(int(uid)))
	}
	fmt.Fprintf(&group, "root:x:0:%s\nevil:x:0:\n", strings.Join(members, ","))
	return []file{regular("etc/passwd", 0o644, []byte(passwd.String())), regular("etc/group", 0o644, []byte(group.String()))}
}

func volumeSet(paths ...string) map[string]any {
	out := map[string]any{}
	for _, p := range paths {
		out[p] = map[string]any{}
	}
	return out
}

func manyLabels(n int) map[string]string {
	out := make(map[string]string, n)
	for i := range n {
		out["label-"+strconv.Itoa(i)] = "x"
	}
	return out
}

func names(images []image) []string {
	var out []string
	for _, i := range images {
		out = append(out, i.name)
	}
	return append(out, imageName("layers"))
}

// baseLayer holds the probe.
func baseLayer(probe []byte) []file {
	return []file{folder("tmp/", 0o1777), folder("etc/", 0o755), regular("probe", 0o755, probe), regular("etc/passwd", 0o644, []byte("root:x:0:0::/:/bin/sh\n"))}
}

func loadImages(t *testing.T, images []image) {
	t.Helper()
	probe, err := os.ReadFile(filepath.Join(probeDir(t), "probe"))
	if err != nil {
		t.Fatal(err)
	}
	suid := regular("suid", 0o6755, probe)
	capable := regular("capable", 0o755, probe)
	// cap_setuid, cap_sys_admin and all others, permitted and effective.
	capable.header.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": "\x01\x00\x00\x02\xff\xff\xff\xff\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00"}
	for i := range images {
		if images[i].name == imageName("suid") {
			images[i].layers = [][]file{{suid, capable}}
		}
	}
	if refused := load(t, images, baseLayer(probe), runtime.GOARCH); refused != "" {
		t.Fatal("docker load: ", refused)
	}
}

// refusedImage: the request is denied for its image, with a word that says why, and nothing is made of it.
func refusedImage(t *testing.T, w *world, name, why string) {
	t.Helper()
	o := w.sbx(t, "run", "--image", name, "--", "/probe", "ids")
	if o.Code != 120 || !strings.Contains(o.Stderr, why) || o.Stdout != "" {
		t.Errorf("%s: exit %d, want 120 and %q\n%s%.400s", name, o.Code, why, o.Stdout, o.Stderr)
	}
}

func setuidProgram(t *testing.T, w *world) {
	e := w.run(t, "--image", imageName("suid"), "--", "/probe", "batch", "ids", "walk")
	plain := find(t, linesOf(e.output), "uid").Detail
	var found []string
	for _, l := range linesOf(e.output) {
		if l.Call == "setid" || l.Call == "capability" {
			found = append(found, l.Call+" "+l.Detail)
		}
	}
	if !slices.Contains(found, "setid /suid") || !slices.Contains(found, "capability /capable") {
		t.Errorf("the image has not what was put into it: %q", found)
	}
	for _, program := range []string{"/suid", "/capable"} {
		e := w.run(t, "--image", imageName("suid"), "--", program, "batch", "ids", "status")
		lines := linesOf(e.output)
		first, _, _ := strings.Cut(find(t, lines, "uid").Detail, " ")
		if got := find(t, lines, "uid").Detail; got != first+" "+first+" "+first || strings.HasPrefix(got, "0 ") || len(first) != len(strings.Fields(plain)[0]) {
			t.Errorf("%s runs as uid %s", program, got)
		}
		if got := find(t, lines, "gid").Detail; got != first+" "+first+" "+first {
			t.Errorf("%s runs as gid %s", program, got)
		}
		for _, set := range []string{"CapPrm", "CapEff", "CapBnd"} {
			if got := find(t, lines, set).Detail; strings.Trim(got, "0") != "" {
				t.Errorf("%s has %s %s", program, set, got)
			}
		}
	}
}

func imageVolumes(t *testing.T, w *world) {
	before := strings.Fields(docker(t, "volume", "ls", "-q"))
	for _, v := range refusedVolumes {
		refusedImage(t, w, imageName("volume"+v), "volume")
	}
	e := w.run(t, "--image", imageName("shadowed"), "--", "/probe", "bytes")
	lines := linesOf(e.output)
	for _, v := range shadowedVolumes {
		l := expect(t, lines, v, "ENOSPC")
		if n, err := strconv.Atoi(l.Detail); err != nil || n < mib || n > 128*mib {
			t.Errorf("%s took %s bytes", v, l.Detail)
		}
	}
	for _, name := range strings.Fields(docker(t, "volume", "ls", "-q")) {
		if !slices.Contains(before, name) {
			used := docker(t, "ps", "-aq", "--filter", "volume="+name)
			t.Errorf("a volume %s came to be (used by %q)", name, used)
		}
	}
}

func imageUser(t *testing.T, w *world) {
	for _, name := range []string{"user0", "usernames", "userhuge", "username"} {
		e := w.run(t, "--image", imageName(name), "--", "/probe", "ids")
		lines := linesOf(e.output)
		// A group of the image that is called like the slot's gid means another gid to the engine; then the gate sees it.
		if e.Reason == "gate_failed" && strings.Contains(e.Detail, "Groups") && len(lines) == 0 {
			continue
		}
		expectEnd(t, e, "success", "")
		first, _, _ := strings.Cut(find(t, lines, "uid").Detail, " ")
		n, err := strconv.ParseUint(first, 10, 32)
		if err != nil || uint32(n) < firstUID || uint32(n) >= firstUID+slotUIDs {
			t.Errorf("%s: uid %s", name, first)
		}
		for _, kind := range []string{"uid", "gid"} {
			if got := find(t, lines, kind).Detail; got != first+" "+first+" "+first {
				t.Errorf("%s: %s %s", name, kind, got)
			}
		}
		if groups := strings.Fields(find(t, lines, "groups").Detail); slices.Contains(groups, "0") || len(groups) != 8 {
			t.Errorf("%s: groups %q", name, groups)
		}
	}
}

func imageConfig(t *testing.T, w *world) {
	w.take(t, 1)
	id := w.start(t, "--image", imageName("config"), "--", "/probe", "batch", "env", "inotify wait")
	lines := w.awaitLine(t, id, "ready")
	p := w.place(t, id)
	for _, name := range []string{"LD_PRELOAD", "GODEBUG", "GOMEMLIMIT"} {
		for _, l := range lines {
			if l.Call == name {
				t.Errorf("the job has %s=%s", name, l.Detail)
			}
		}
	}
	if got := find(t, lines, "HOME").Detail; got != "/home/job" {
		t.Errorf("HOME is %s", got)
	}
	if got := find(t, lines, "SANDBOXD_JOB").Detail; got != id {
		t.Errorf("SANDBOXD_JOB is %s", got)
	}
	if got := find(t, lines, "cwd").Detail; got != "/home/job" {
		t.Errorf("cwd is %s", got)
	}
	environ := strings.Split(strings.TrimRight(read(t, fmt.Sprintf("/proc/%d/environ", p.init)), "\x00"), "\x00")
	slices.Sort(environ)
	if want := []string{"HOME=/", "HOSTNAME=sandbox", "PATH=/sbx/bin"}; !slices.Equal(environ, want) {
		t.Errorf("init's environment is %q, want %q", environ, want)
	}
	c := inspect(t, p.container)
	for field, want := range map[string]string{
		"Config.Entrypoint": `["/sbx/bin/sbx-init"]`, "Config.WorkingDir": `"/"`, "Config.StopSignal": `"SIGKILL"`, "Config.Healthcheck.Test": `["NONE"]`,
		"Config.OnBuild": "null", "Config.Tty": "false", "Config.OpenStdin": "false", "Config.Domainname": `""`, "Config.Hostname": `"sandbox"`,
		"Config.Labels.sandboxd.job": `"` + id + `"`, "Config.Labels.sandboxd.instance": `"` + w.d.Instance() + `"`, "HostConfig.PortBindings": "null",
	} {
		if got := at(c, field); got != want {
			t.Errorf("%s is %s, want %s", field, got, want)
		}
	}
	w.kill(t, id)
	expectEnd(t, w.await(t, id), "cancelled", "by_caller")
}

func imageLinks(t *testing.T, w *world) {
	if err := os.Mkdir(canaryPlace, 0o777); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	defer os.RemoveAll(canaryPlace)
	for _, at := range linkedPlaces {
		why := "containers get"
		if strings.HasPrefix(at, "etc/") {
			why = "a link"
		}
		refusedImage(t, w, imageName("link/"+at), why)
	}
	for _, name := range []string{"twolayers", "through", "dots", "hard", "fifo"} {
		refusedImage(t, w, imageName(name), "containers get")
	}
	// A device in an image is a file without use: its mount is nodev.
	e := w.run(t, "--image", imageName("device"), "--", "/probe", "read", "/sda")
	if l := expect(t, linesOf(e.output), "/sda", "EACCES"); l.Detail != "" {
		t.Errorf("a device of the image gave %q", l.Detail)
	}
	if left, err := os.ReadDir(canaryPlace); err != nil || len(left) > 0 {
		t.Errorf("on the host: %v %v", left, err)
	}
}

func imageSizes(t *testing.T, w *world) {
	refusedImage(t, w, imageName("labels"), "labels")
	refusedImage(t, w, imageName("env"), "variables of")
	refusedImage(t, w, imageName("arm"), "linux/arm64")
	var layers [][]file
	for i := range 130 {
		layers = append(layers, []file{regular(fmt.Sprintf("f%d", i), 0o644, []byte{byte(i)})})
	}
	refused := load(t, []image{{name: imageName("layers"), bare: true, layers: layers}}, nil, runtime.GOARCH)
	if refused != "" {
		if !strings.Contains(refused, "max depth") {
			t.Errorf("the engine refuses 130 layers otherwise: %s", refused)
		}
		return // such an image cannot be had here
	}
	refusedImage(t, w, imageName("layers"), "layers")
}

// TestTagMovedBetweenAdmissionAndStart: the one place is held while the tag moves to another image.
func TestTagMovedBetweenAdmissionAndStart(t *testing.T) {
	probe, err := os.ReadFile(filepath.Join(probeDir(t), "probe"))
	if err != nil {
		t.Fatal(err)
	}
	name := imageName("moved")
	marked := func(mark string) []image {
		return []image{{name: name, layers: [][]file{{regular("mark", 0o644, []byte(mark))}}}}
	}
	if refused := load(t, marked("old"), baseLayer(probe), runtime.GOARCH); refused != "" {
		t.Fatal(refused)
	}
	old := strings.TrimSpace(docker(t, "image", "inspect", "-f", "{{.Id}}", name))
	t.Cleanup(func() { _ = exec.Command("docker", "rmi", "-f", old).Run() })
	conf := strings.Replace(config([]string{name}), fmt.Sprintf("max_running = %d\nmax_running_per_user = %d", 2*together, 2*together), "max_running = 1\nmax_running_per_user = 1", 1)
	d := harness.New(t, harness.Options{Config: conf})
	blocker := strings.TrimSpace(d.Must("run", "-d", "--image", tiny, "--", "sleep", "60").Stdout)
	id := strings.TrimSpace(d.Must("run", "-d", "--image", name, "--", "/probe", "read", "/mark").Stdout)
	if refused := load(t, marked("new"), baseLayer(probe), runtime.GOARCH); refused != "" {
		t.Fatal(refused)
	}
	if now := strings.TrimSpace(docker(t, "image", "inspect", "-f", "{{.Id}}", name)); now == old {
		t.Fatal("the tag did not move")
	}
	d.Must("cancel", "--kill", blocker)
	d.Must("wait", id)
	if l := find(t, linesOf(d.Sbx("logs", id).Stdout), "/mark"); l.Detail != "old" {
		t.Errorf("the job saw %q, want the image its tag named when it was admitted", l.Detail)
	}
	var jobs []inspected
	d.JSON(&jobs, "inspect", id)
	if jobs[0].ImageID != old {
		t.Errorf("the record says %s, want %s", jobs[0].ImageID, old)
	}
	time.Sleep(1100 * time.Millisecond) // a name's id is believed for a second
	o := d.Must("run", "--image", name, "--", "/probe", "read", "/mark")
	if l := find(t, linesOf(o.Stdout), "/mark"); l.Detail != "new" {
		t.Errorf("a later job saw %q, want the new image", l.Detail)
	}
}
