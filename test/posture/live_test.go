package posture_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// inspect is the engine's record of a container.
func inspect(t *testing.T, container string) map[string]any {
	t.Helper()
	var out []map[string]any
	if err := json.Unmarshal([]byte(docker(t, "inspect", container)), &out); err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// at is the JSON of one field. A name with dots of its own is tried whole first.
func at(v any, field string) string {
	for {
		m, ok := v.(map[string]any)
		if !ok {
			break
		}
		if whole, ok := m[field]; ok {
			v = whole
			break
		}
		name, rest, found := strings.Cut(field, ".")
		if !found {
			return "null"
		}
		v, field = m[name], rest
	}
	text, _ := json.Marshal(v)
	return string(text)
}

// mustMask is moby's newest list; ours must hold all of it.
var mustMask = []string{"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
	"/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap"}

const canary = "canary-5f1d7c"

// TestLiveContainer compares a running job's container with the posture, which is written down here once more, apart
// from the code that renders it: the engine's record, the kernel's word on init and the command, the mounts, the cgroups.
func TestLiveContainer(t *testing.T) {
	w := newWorld(t, nil)
	dir := t.TempDir()
	task := filepath.Join(dir, "task.json")
	if err := os.WriteFile(task, []byte(`{"command":["sh","-c","cat; while :; do sleep 1; done","`+canary+`-argv"],"image":"sandboxd/tiny","env":{"TOKEN":"`+canary+`-env"},
		"task":{"goal":"`+canary+`-goal","context":"`+canary+`-context"},"stdin":"Y2FuYXJ5LTVmMWQ3Yy1zdGRpbg==","limits":{"memory":"256MiB","cpus":"0.5","pids":100}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	id := w.start(t, "--task", task)
	p := w.place(t, id)
	eventually(t, killWithin, "the job has its stdin", func() bool { return strings.Contains(w.output(t, id), canary+"-stdin") })
	c := inspect(t, p.container)

	t.Run("record", func(t *testing.T) { liveRecord(t, w, c, p, id) })
	t.Run("processes", func(t *testing.T) { liveProcesses(t, p) })
	t.Run("mounts", func(t *testing.T) { liveMounts(t, p) })
	t.Run("cgroups", func(t *testing.T) { liveCgroups(t, p) })
	t.Run("secrets stay out of the engine", func(t *testing.T) { liveSecrets(t, w, p) })
	w.kill(t, id)
	w.await(t, id)
	if strings.Contains(w.d.Log(), canary) {
		t.Error("the daemon's log has words of the request")
	}
}

func liveRecord(t *testing.T, w *world, c map[string]any, p place, id string) {
	uid := strconv.Itoa(int(p.uid))
	tmpfs := func(options string, mode string) string {
		return options + ",uid=" + uid + ",gid=" + uid + ",mode=" + mode
	}
	_, slot, _ := strings.Cut(strings.TrimPrefix(c["Name"].(string), "/sandboxd-"), "-")
	want := map[string]any{
		"NetworkMode": "none", "IpcMode": "none", "CgroupnsMode": "private", "ReadonlyRootfs": true, "CapDrop": []any{"ALL"}, "OomScoreAdj": 500.,
		"Memory": (256. + 24) * mib, "MemorySwap": (256. + 24) * mib, "NanoCpus": 6e8, "PidsLimit": 132., "Runtime": "runc",
		"CgroupParent": "/sandboxd-" + w.d.Instance()[:8], "Dns": []any{"127.0.0.1"}, "DnsSearch": []any{"."}, "DnsOptions": []any{"ndots:1"}, "ShmSize": 1. * mib,
		"LogConfig": map[string]any{"Type": "none", "Config": map[string]any{}}, "RestartPolicy": map[string]any{"Name": "no", "MaximumRetryCount": 0.},
		"GroupAdd":      groups(p.uid),
		"ReadonlyPaths": []any{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
		"Ulimits":       []any{ulimit("core", 0), ulimit("memlock", 65536), ulimit("msgqueue", 0), ulimit("nofile", 1024), ulimit("rtprio", 0)},
		"ConsoleSize":   []any{0., 0.},
	}
	host := c["HostConfig"].(map[string]any)
	for key, got := range host {
		switch key {
		case "SecurityOpt", "MaskedPaths", "Tmpfs", "Mounts": // below
		default:
			if expected, named := want[key]; named && !reflect.DeepEqual(got, expected) || !named && !isNothing(got) {
				t.Errorf("HostConfig.%s is %v, want %v", key, got, expected)
			}
		}
		delete(want, key)
	}
	for key := range want {
		t.Errorf("HostConfig has no %s", key)
	}
	for _, path := range mustMask {
		if !slices.Contains(host["MaskedPaths"].([]any), any(path)) {
			t.Errorf("%s is not masked", path)
		}
	}
	options := host["SecurityOpt"].([]any)
	if options[0] != "no-new-privileges" || !strings.HasPrefix(fmt.Sprint(options[1]), `seccomp={"defaultAction":"SCMP_ACT_ERRNO"`) || len(options) > 3 ||
		strings.Contains(fmt.Sprint(options[1:]), "unconfined") {
		t.Errorf("SecurityOpt is %.300v", options)
	}
	mounts := map[string]any{}
	for at, o := range host["Tmpfs"].(map[string]any) {
		mounts[at] = regexp.MustCompile(`size=\d+`).ReplaceAllString(o.(string), "size=N")
	}
	for at, o := range map[string]string{
		"/tmp": tmpfs("rw,nosuid,nodev,noexec,size=N,nr_inodes=65536", "1777"), "/home/job": tmpfs("rw,nosuid,nodev,exec,size=N,nr_inodes=65536", "0700"),
		"/out": tmpfs("rw,nosuid,nodev,noexec,size=N,nr_inodes=65536", "0755"), "/run": tmpfs("rw,nosuid,nodev,noexec,size=N,nr_inodes=1024", "0755"),
	} {
		if mounts[at] != any(o) {
			t.Errorf("tmpfs %s is %v, want %s", at, mounts[at], o)
		}
		delete(mounts, at)
	}
	if len(mounts) > 0 {
		t.Errorf("more tmpfs: %v", mounts)
	}
	for _, m := range host["Mounts"].([]any) {
		if m := m.(map[string]any); m["Type"] != "bind" || m["ReadOnly"] != true || at(m, "BindOptions.Propagation") != `"private"` || !strings.HasPrefix(m["Source"].(string), w.d.Dir+"/run/") {
			t.Errorf("mount %v", m)
		}
	}
	for field, expected := range map[string]string{
		"User": `"` + uid + ":" + uid + `"`, "Entrypoint": `["/sbx/bin/sbx-init"]`, "Cmd": "[]", "Env": `["HOME=/","HOSTNAME=sandbox","PATH=/sbx/bin"]`,
		"WorkingDir": `"/"`, "Hostname": `"sandbox"`, "Domainname": `""`, "Tty": "false", "OpenStdin": "false", "AttachStdin": "false", "AttachStdout": "false",
		"AttachStderr": "false", "StopSignal": `"SIGKILL"`, "Volumes": "null", "OnBuild": "null", "Healthcheck": `{"Test":["NONE"]}`,
		"Labels.sandboxd.instance": `"` + w.d.Instance() + `"`, "Labels.sandboxd.job": `"` + id + `"`, "Labels.sandboxd.slot": `"` + slot + `"`,
	} {
		if got := at(c["Config"], field); got != expected && !(got == "null" && expected == "[]") {
			t.Errorf("Config.%s is %s, want %s", field, got, expected)
		}
	}
	if image := at(c, "Config.Image"); !strings.HasPrefix(image, `"sha256:`) {
		t.Errorf("made of %s, not of an id", image)
	}
}

func groups(uid uint32) []any {
	var out []any
	for i := range uint32(7) {
		out = append(out, strconv.Itoa(int(uid+1+i)))
	}
	return out
}

func ulimit(name string, n float64) any { return map[string]any{"Name": name, "Soft": n, "Hard": n} }

// isNothing: a setting that nobody made.
func isNothing(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return v == false || v == "" || v == 0.
}

func liveProcesses(t *testing.T, p place) {
	uid := strconv.Itoa(int(p.uid))
	groups := uid
	for i := range 7 {
		groups += " " + strconv.Itoa(int(p.uid)+1+i)
	}
	for who, pid := range map[string]int{"init": p.init, "command": p.pid} {
		status := map[string]string{}
		for l := range strings.Lines(read(t, fmt.Sprintf("/proc/%d/status", pid))) {
			name, value, _ := strings.Cut(l, ":")
			status[name] = strings.Join(strings.Fields(value), " ")
		}
		for field, want := range map[string]string{
			"CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000", "CapBnd": "0000000000000000", "CapAmb": "0000000000000000",
			"NoNewPrivs": "1", "Seccomp": "2", "Uid": strings.Repeat(uid+" ", 3) + uid, "Gid": strings.Repeat(uid+" ", 3) + uid, "Groups": groups,
		} {
			if status[field] != want {
				t.Errorf("%s: %s is %q, want %q", who, field, status[field], want)
			}
		}
		for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "uts"} {
			own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
			host, err2 := os.Readlink("/proc/self/ns/" + kind)
			if err != nil || err2 != nil || own == host {
				t.Errorf("%s: namespace %s is %s, the host's is %s (%v %v)", who, kind, own, host, err, err2)
			}
		}
		limits := strings.Join(strings.Fields(read(t, fmt.Sprintf("/proc/%d/limits", pid))), " ")
		for _, want := range []string{"Max core file size 0 0 bytes", "Max locked memory 65536 65536 bytes", "Max msgqueue size 0 0 bytes", "Max open files 1024 1024 files", "Max realtime priority 0 0"} {
			if !strings.Contains(limits, want) {
				t.Errorf("%s: no %q in its limits", who, want)
			}
		}
		if got := read(t, fmt.Sprintf("/proc/%d/oom_score_adj", pid)); got != "500" {
			t.Errorf("%s: oom_score_adj is %s", who, got)
		}
	}
	// cpus 0.5 is one core at most.
	if list := regexp.MustCompile(`Cpus_allowed_list:\s*(\d+)\n`).FindStringSubmatch(read(t, fmt.Sprintf("/proc/%d/status", p.pid)) + "\n"); list == nil && runtime.NumCPU() > 1 {
		t.Error("the command may use more than one core")
	}
}

// The mounts of a job without workspace, in full: target → file system, its options that count, "ro" or "rw".
var (
	fixedMounts = map[string]string{
		"/": "overlay ro nosuid nodev", "/proc": "proc rw nosuid nodev noexec", "/dev": "tmpfs ro nosuid", "/dev/pts": "devpts rw nosuid noexec",
		"/dev/mqueue": "mqueue rw nosuid nodev noexec", "/sys": "sysfs ro nosuid nodev noexec", "/sys/fs/cgroup": "tmpfs ro nosuid nodev noexec",
		"/tmp": "tmpfs rw nosuid nodev noexec", "/out": "tmpfs rw nosuid nodev noexec", "/run": "tmpfs rw nosuid nodev noexec", "/home/job": "tmpfs rw nosuid nodev",
		"/etc/hosts": "* ro nosuid", "/etc/hostname": "* ro nosuid", "/etc/resolv.conf": "* ro nosuid",
		"/sbx/bin/sbx-init": "* ro nosuid nodev", "/sbx/bin/sbx": "* ro nosuid nodev", "/sbx/slot": "* ro nosuid nodev", "/mnt/probe": "* ro nosuid nodev",
		"/proc/bus": "proc ro nosuid nodev noexec", "/proc/fs": "proc ro nosuid nodev noexec", "/proc/irq": "proc ro nosuid nodev noexec", "/proc/sys": "proc ro nosuid nodev noexec",
	}
	mayLack = []string{"/dev/mqueue", "/dev/pts"}
)

func liveMounts(t *testing.T, p place) {
	seen := map[string]bool{}
	for l := range strings.Lines(read(t, fmt.Sprintf("/proc/%d/mountinfo", p.pid))) {
		own, super, _ := strings.Cut(strings.TrimSpace(l), " - ")
		f := strings.Fields(own)
		target, root, options, kind := f[4], f[3], strings.Split(f[5], ","), strings.Fields(super)[0]
		if len(f) > 6 {
			t.Errorf("%s is not private: %v", target, f[6:])
		}
		if seen[target] {
			t.Errorf("%s is mounted twice", target)
		}
		seen[target] = true
		want, fixed := fixedMounts[target]
		switch {
		case fixed:
		case strings.HasPrefix(target, "/sys/fs/cgroup/"):
			want = "cgroup ro nosuid nodev noexec"
		case root == "/null" && (strings.HasPrefix(target, "/proc/") || strings.HasPrefix(target, "/sys/")):
			want = "tmpfs nosuid"
		case kind == "tmpfs" && (strings.HasPrefix(target, "/proc/") || strings.HasPrefix(target, "/sys/")):
			want = "tmpfs ro nosuid"
		default:
			t.Errorf("an unexpected mount: %s", l)
			continue
		}
		words := strings.Fields(want)
		if words[0] != "*" && words[0] != kind {
			t.Errorf("%s is a %s, want %s", target, kind, words[0])
		}
		for _, o := range words[1:] {
			if !slices.Contains(options, o) {
				t.Errorf("%s lacks %s: %v", target, o, options)
			}
		}
	}
	for target := range fixedMounts {
		if !seen[target] && !slices.Contains(mayLack, target) {
			t.Errorf("%s is not mounted", target)
		}
	}
}

func liveCgroups(t *testing.T, p place) {
	for _, g := range []struct {
		sub, memory, tcp, pids, quota string
	}{
		{"", "293601280", "73400320", "132", "60000"},
		{"job", "268435456", "67108864", "100", "50000"},
	} {
		for file, want := range map[string]string{
			"memory/memory.limit_in_bytes": g.memory, "memory/memory.memsw.limit_in_bytes": g.memory, "memory/memory.kmem.tcp.limit_in_bytes": g.tcp,
			"pids/pids.max": g.pids, "cpu/cpu.cfs_quota_us": g.quota, "cpu/cpu.cfs_period_us": "100000", "memory/memory.oom_control": "oom_kill_disable 0",
		} {
			controller, name, _ := strings.Cut(file, "/")
			path := filepath.Join(p.cgroups[controller], g.sub, name)
			text, err := os.ReadFile(path)
			if os.IsNotExist(err) && strings.Contains(name, "memsw") {
				continue // a kernel without swap accounting
			}
			if got := strings.TrimSpace(string(text)); err != nil || got != want && !strings.HasPrefix(got, want+"\n") {
				t.Errorf("%s of %q is %q (%v), want %s", name, g.sub, got, err, want)
			}
		}
	}
	for controller, dir := range p.cgroups {
		own := strings.Fields(read(t, filepath.Join(dir, "cgroup.procs")))
		job := strings.Fields(read(t, filepath.Join(dir, "job", "cgroup.procs")))
		if !slices.Equal(own, []string{strconv.Itoa(p.init)}) || !slices.Contains(job, strconv.Itoa(p.pid)) || slices.Contains(job, strconv.Itoa(p.init)) {
			t.Errorf("%s: the container's cgroup holds %v, the job's %v; init is %d", controller, own, job, p.init)
		}
	}
	devices := strings.TrimSpace(string(must(os.ReadFile(strings.Replace(p.cgroups["memory"], "/memory/", "/devices/", 1) + "/devices.list"))))
	for l := range strings.Lines(devices + "\n") {
		if l = strings.TrimSpace(l); l == "a *:* rwm" || strings.HasPrefix(l, "b ") && l != "b *:* m" {
			t.Errorf("devices: %s", l)
		}
	}
	if devices == "" {
		t.Error("no list of devices")
	}
}

func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

// liveSecrets: nothing of the request is anywhere but in the job.
func liveSecrets(t *testing.T, w *world, p place) {
	for _, args := range [][]string{
		{"inspect", p.container}, {"ps", "-a", "--no-trunc"}, {"ps", "-a", "--format", "{{.Labels}} {{.Command}}"}, {"container", "top", p.container, "-o", "pid,comm"},
	} {
		if strings.Contains(docker(t, args...), canary) {
			t.Errorf("docker %v shows words of the request", args)
		}
	}
	job := strings.Fields(read(t, filepath.Join(p.cgroups["pids"], "job/cgroup.procs")))
	found := false
	for _, kind := range []string{"cmdline", "environ"} {
		paths, _ := filepath.Glob("/proc/[0-9]*/" + kind)
		for _, path := range paths {
			pid := strings.Split(path, "/")[2]
			text, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(text), canary) {
				continue
			}
			if slices.Contains(job, pid) {
				found = true
			} else {
				t.Errorf("%s has words of the request: %.300q", path, text)
			}
		}
	}
	if !found {
		t.Error("not even the job itself has them; the search finds nothing")
	}
	var state []string
	must(0, filepath.WalkDir(w.d.Dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), canary) {
				state = append(state, path)
			}
		}
		return nil
	}))
	for _, path := range state { // the task file of the slot, which its group alone may read
		if st, err := os.Stat(path); err != nil || filepath.Base(path) != "task.json" || st.Mode() != 0o440 {
			t.Errorf("%s has words of the request", path)
		}
	}
	if strings.Contains(w.d.Log(), canary) {
		t.Error("the daemon's log has words of the request")
	}
}
