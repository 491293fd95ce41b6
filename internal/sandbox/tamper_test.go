package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sandboxd/internal/engine"
	"sandboxd/internal/sandbox"
)

// object is a JSON object of the engine's API.
type object = map[string]any

// liar stands between the sandbox and the engine: it changes what is created, and hides it from inspections. It is an
// engine with a bug, or one that an attacker has changed.
type liar struct {
	create  func(config, host object) // what to do to a container's settings
	hide    bool                      // answer inspections with what was asked for
	warning string

	asked object // of the last create
}

var inspection = regexp.MustCompile(`/containers/[0-9a-f]{64}/json$`)

// serve starts the proxy and returns the engine that speaks through it.
func (l *liar) serve(t *testing.T) *engine.Docker {
	t.Helper()
	if os.Getenv("DOCKER_HOST") != "" {
		t.Skip("needs the engine's socket in its usual place")
	}
	dir, err := os.MkdirTemp("/tmp", "sbxliar")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ln, err := net.Listen("unix", filepath.Join(dir, "docker.sock"))
	if err != nil {
		t.Fatal(err)
	}
	pool := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", "/var/run/docker.sock")
	}}
	proxy := &httputil.ReverseProxy{
		Transport: pool,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: "docker"})
			l.request(t, r.Out)
		},
		ModifyResponse: l.answer,
	}
	srv := &http.Server{Handler: proxy}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(ln) }()
	t.Cleanup(func() { _ = srv.Close(); <-done; pool.CloseIdleConnections() })
	return realEngine(t, "unix://"+ln.Addr().String())
}

func (l *liar) request(t *testing.T, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/containers/create") {
		return
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
		return
	}
	var config object
	l.asked = object{}
	if err := errors.Join(json.Unmarshal(text, &config), json.Unmarshal(text, &l.asked)); err != nil {
		t.Error(err)
		return
	}
	if l.create != nil {
		l.create(config, config["HostConfig"].(object))
	}
	text, _ = json.Marshal(config)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
}

func (l *liar) answer(r *http.Response) error {
	create := strings.HasSuffix(r.Request.URL.Path, "/containers/create") && l.warning != ""
	inspect := inspection.MatchString(r.Request.URL.Path) && l.hide
	if r.StatusCode >= 300 || !create && !inspect {
		return nil
	}
	var answer object
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		return err
	}
	if create {
		answer["Warnings"] = []string{l.warning}
	}
	if inspect {
		l.cover(answer)
	}
	text, err := json.Marshal(answer)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	r.Header.Set("Content-Length", "")
	r.Header.Del("Content-Length")
	return err
}

// cover puts what was asked for over what an inspection would show, except what the engine itself fills in.
func (l *liar) cover(answer object) {
	host, config := answer["HostConfig"].(object), answer["Config"].(object)
	for k, v := range l.asked["HostConfig"].(object) {
		host[k] = v
	}
	for k := range host {
		if _, asked := l.asked["HostConfig"].(object)[k]; !asked {
			delete(host, k)
		}
	}
	for k, v := range l.asked {
		if _, known := config[k]; known && k != "Env" && k != "Labels" { // the image adds labels
			config[k] = v
		}
	}
	config["Env"] = l.asked["Env"]
	var mounts []any
	for _, m := range l.asked["HostConfig"].(object)["Mounts"].([]any) {
		b := m.(object)
		mounts = append(mounts, object{"Type": "bind", "Source": b["Source"], "Destination": b["Target"], "RW": false, "Propagation": "private"})
	}
	answer["Mounts"] = mounts
}

// tampering is one way a container could be weaker than asked. A finding must match want, by the inspection where it
// shows the truth, and by the kernel's evidence where it lies.
type tampering struct {
	name    string
	change  func(config, host object)
	inspect string // part of a finding when the inspection is honest
	live    string // part of a finding when it lies
}

var tamperings = []tampering{
	{"a capability", func(_, h object) { h["CapAdd"] = []string{"NET_RAW"} }, "CapAdd", "CapBnd"},
	{"all capabilities kept", func(_, h object) { h["CapDrop"] = nil }, "CapDrop", "CapBnd"},
	{"privileged", func(_, h object) { h["Privileged"] = true }, "Privileged", "CapBnd"},
	{"no seccomp", func(_, h object) { h["SecurityOpt"] = []string{"no-new-privileges", "seccomp=unconfined"} }, "SecurityOpt", "Seccomp"},
	{"the engine's seccomp", func(_, h object) { h["SecurityOpt"] = []string{"no-new-privileges"} }, "SecurityOpt", "probe"},
	{"new privileges", func(_, h object) { h["SecurityOpt"] = h["SecurityOpt"].([]any)[1:] }, "SecurityOpt", "NoNewPrivs"},
	{"another user", func(c, _ object) { c["User"] = "12345:12345" }, "User", ""},
	{"another group", func(_, h object) { h["GroupAdd"] = []string{"0"} }, "Groups", "Groups"},
	{"more memory", func(_, h object) { h["Memory"], h["MemorySwap"] = 1<<30, 1<<30 }, "Memory", "memory.limit_in_bytes"},
	{"swap", func(_, h object) { h["MemorySwap"] = -1 }, "MemorySwap", "memsw"},
	{"more cpu", func(_, h object) { h["NanoCpus"] = 2e9 }, "NanoCPUs", "cfs_quota"},
	{"no cpu limit", func(_, h object) { h["NanoCpus"] = 0 }, "NanoCPUs", "cfs_quota"},
	{"more pids", func(_, h object) { h["PidsLimit"] = 100000 }, "PidsLimit", "pids.max"},
	{"no pids limit", func(_, h object) { h["PidsLimit"] = 0 }, "PidsLimit", "pids.max"},
	{"a writable root", func(_, h object) { h["ReadonlyRootfs"] = false }, "ReadonlyRootfs", "mount /: lacks ro"},
	{"nothing masked", func(_, h object) { h["MaskedPaths"] = []string{} }, "MaskedPaths", "missing mount: /proc/kallsyms"},
	{"the engine's masks", func(_, h object) { delete(h, "MaskedPaths") }, "MaskedPaths", "missing mount: /proc/kallsyms"},
	{"nothing read-only", func(_, h object) { h["ReadonlyPaths"] = []string{} }, "ReadonlyPaths", "missing mount: /proc/sys"},
	{"the host's network", func(_, h object) { h["NetworkMode"] = "host" }, "NetworkMode", "net namespace"},
	{"a network", func(_, h object) { h["NetworkMode"] = "bridge" }, "NetworkMode", "network: has"},
	{"the host's pids", func(_, h object) { h["PidMode"] = "host" }, "PidMode", ""},
	{"the host's ipc", func(_, h object) { h["IpcMode"] = "host" }, "IpcMode", "ipc namespace"},
	{"shared memory", func(_, h object) { h["IpcMode"] = "private" }, "IpcMode", "/dev/shm"},
	{"the host's uts", func(c, h object) { h["UTSMode"] = "host"; delete(c, "Hostname") }, "UTSMode", "uts namespace"},
	{"the host's cgroups", func(_, h object) { h["CgroupnsMode"] = "host" }, "CgroupnsMode", "cgroup namespace"},
	{"another cgroup parent", func(_, h object) { h["CgroupParent"] = "/docker" }, "CgroupParent", "is not below"},
	{"a device", func(_, h object) {
		h["Devices"] = []any{object{"PathOnHost": "/dev/kmsg", "PathInContainer": "/dev/kmsg", "CgroupPermissions": "rwm"}}
	}, "Devices", "devices cgroup"},
	{"a device rule", func(_, h object) { h["DeviceCgroupRules"] = []string{"b 254:* rwm"} }, "Devices", "devices cgroup"},
	{"the engine's socket", func(_, h object) { h["Binds"] = []string{"/var/run/docker.sock:/run/docker.sock"} }, "Binds", "unexpected mount: /run/docker.sock"},
	{"a writable bind", func(_, h object) { h["Mounts"].([]any)[2].(object)["ReadOnly"] = false }, "Binds", "mount /sbx/slot: lacks ro"},
	{"a tmpfs without bounds", func(_, h object) { h["Tmpfs"].(object)["/tmp"] = "rw,nosuid,nodev,noexec" }, "Tmpfs", "mount /tmp: size"},
	{"a tmpfs with exec", func(_, h object) { h["Tmpfs"].(object)["/out"] = "rw,exec,size=8m,nr_inodes=1000" }, "Tmpfs", "mount /out: lacks noexec"},
	{"one tmpfs less", func(_, h object) { delete(h["Tmpfs"].(object), "/run") }, "Tmpfs", "missing mount: /run"},
	{"one tmpfs more", func(_, h object) { h["Tmpfs"].(object)["/var"] = "size=1m" }, "Tmpfs", "unexpected mount: /var"},
	{"a volume", func(c, _ object) { c["Volumes"] = object{"/var/lib": object{}} }, "Volumes", "unexpected mount: /var/lib"},
	{"core files", func(_, h object) { h["Ulimits"] = []any{object{"Name": "core", "Soft": 1 << 20, "Hard": 1 << 20}} }, "Ulimits", "ulimit core"},
	{"another command", func(c, _ object) { c["Entrypoint"] = []string{"/bin/sh", "-c", "exec /sbx/bin/sbx-init"} }, "Entrypoint", ""},
	{"another environment", func(c, _ object) { c["Env"] = []string{"GODEBUG=x"} }, "Env", "init environment"},
	{"an oom score", func(_, h object) { h["OomScoreAdj"] = 100 }, "OomScoreAdj", "oom_score_adj"},
	{"the engine's init", func(_, h object) { h["Init"] = true }, "Init", ""},
	{"a terminal", func(c, _ object) { c["Tty"] = true }, "Tty", "/dev/"},
	{"a sysctl", func(_, h object) { h["Sysctls"] = object{"net.ipv4.ip_forward": "1"} }, "Sysctls", "?"},
	{"a restart policy", func(_, h object) { h["RestartPolicy"] = object{"Name": "always"} }, "RestartPolicy", "?"},
}

func TestTamperedContainerIsRefusedByInspection(t *testing.T) {
	l := &liar{}
	r := openRoom(t, l.serve(t), nil)
	for _, c := range tamperings {
		t.Run(c.name, func(t *testing.T) {
			l.create = c.change
			r.refused(t, c.inspect)
		})
	}
}

func TestTamperedContainerIsRefusedByTheKernelsEvidenceWhereTheEngineLies(t *testing.T) {
	l := &liar{hide: true}
	r := openRoom(t, l.serve(t), func(c *sandbox.Config) { c.StartTimeout /= 5 })
	t.Run("untouched", func(t *testing.T) { r.fill(t, r.request()) })
	for _, c := range tamperings {
		if c.live == "?" { // nothing a job could use is changed by it, and nothing shows
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			l.create = c.change
			r.refused(t, c.live)
		})
	}
}

func TestWarningOfTheEngineIsRefused(t *testing.T) {
	l := &liar{warning: "Your kernel does not support swap limit capabilities"}
	r := openRoom(t, l.serve(t), nil)
	r.refused(t, "does not support swap limit")
}

// refused fills a slot in vain. Without want the engine or init may be what fails.
func (r *room) refused(t *testing.T, want string) {
	t.Helper()
	sl, err := r.Fill(t.Context(), r.request())
	if err == nil {
		_ = sl.Remove(t.Context())
		t.Fatal("the tampered container passed the gate")
	}
	var gate *sandbox.GateError
	if !errors.As(err, &gate) {
		if want != "" {
			t.Fatalf("%v, want a GateError about %s", err, want)
		}
		t.Log("not by the gate: ", err)
	} else if !strings.Contains(err.Error(), want) {
		t.Fatalf("%v, want a finding about %s", err, want)
	}
	list, err := r.eng.List(t.Context(), map[string]string{sandbox.LabelInstance: r.instance})
	if err != nil || len(list) > 0 {
		t.Fatalf("container left: %v %v", list, err)
	}
	if left := r.rows.all(); len(left) > 0 {
		t.Fatalf("record left: %v", left)
	}
}
