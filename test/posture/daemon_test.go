package posture_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandboxd/api"
	"sandboxd/test/harness"
)

// limitsOfRequests: by raw JSON, for sbx itself would refuse most of it.
func limitsOfRequests(t *testing.T, w *world) {
	w.take(t, 1)
	fields := []string{"cpus", "memory", "pids", "nofile", "tmp_bytes", "home_bytes", "out_bytes", "output_keep"}
	for _, value := range []string{"0", "-1", "1e18", "0.0001", `"0"`, `"-1"`, `""`, "true", "[]", `"unlimited"`, "1e999", "9223372036854775808", `"0x10"`} {
		for _, field := range fields {
			body := fmt.Sprintf(`{"command":["true"],"image":"sandboxd/tiny","limits":{%q:%s}}`, field, value)
			code, text := post(t, w.d, body)
			if code != http.StatusBadRequest && code != http.StatusForbidden || !strings.Contains(text, field) && !strings.Contains(text, "number") {
				t.Errorf("%s = %s: %d %s", field, value, code, text)
			}
		}
	}
	for _, value := range []string{"0", "-1", `"0s"`, `"-1s"`, "1e18", `"1000000h"`} {
		if code, text := post(t, w.d, `{"command":["true"],"image":"sandboxd/tiny","timeout":`+value+`}`); code != http.StatusBadRequest && code != http.StatusForbidden {
			t.Errorf("timeout = %s: %d %s", value, code, text)
		}
	}
	for _, limits := range []string{"null", "{}", `{"memory":null,"cpus":null,"pids":null,"nofile":null,"tmp_bytes":null}`} {
		code, text := post(t, w.d, `{"command":["sleep","60"],"image":"sandboxd/tiny","limits":`+limits+`}`)
		if code == http.StatusBadRequest {
			continue // refused is safe as well
		}
		if code != http.StatusCreated {
			t.Errorf("limits = %s: %d %s", limits, code, text)
			continue
		}
		var j api.Job
		if err := json.Unmarshal([]byte(text), &j); err != nil {
			t.Fatal(err)
		}
		p := w.place(t, j.ID)
		for file, want := range map[string]string{"memory/memory.limit_in_bytes": "1073741824", "pids/pids.max": "512", "cpu/cpu.cfs_quota_us": "100000"} {
			controller, name, _ := strings.Cut(file, "/")
			if got := read(t, filepath.Join(p.cgroups[controller], "job", name)); got != want {
				t.Errorf("limits = %s: %s is %s, want %s", limits, name, got, want)
			}
		}
		w.kill(t, j.ID)
		w.await(t, j.ID)
	}
}

func post(t *testing.T, d *harness.Daemon, body string) (code int, text string) {
	t.Helper()
	res, err := d.HTTP().Post("http://sandboxd"+api.PathJobs, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, b.String()
}

// TestSecondDaemon: on one state folder the second refuses; on one engine with a state of its own it touches nothing of
// the first's, and no two containers run under one uid.
func TestSecondDaemon(t *testing.T) {
	first := harness.New(t, harness.Options{Config: config(nil)})
	id := strings.TrimSpace(first.Must("run", "-d", "--image", tiny, "--", "sh", "-c", "sleep 4; echo done").Stdout)

	same := exec.Command(filepath.Join(first.Bin, "sandboxd"), "--config", first.Config)
	same.Env = append(os.Environ(), "NO_COLOR=1")
	began := time.Now()
	out, err := same.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "state") || time.Since(began) > 20*time.Second {
		t.Errorf("a second daemon on one state folder: %v\n%s", err, out)
	}
	if o := first.Sbx("daemon", "status"); o.Code != 0 {
		t.Errorf("the first is disturbed: %+v", o)
	}

	second := harness.New(t, harness.Options{Config: config(nil)})
	if first.Instance() == second.Instance() {
		t.Error("two daemons have one instance")
	}
	var uids []string
	for _, d := range []*harness.Daemon{first, second} {
		d.Must("run", "-d", "--image", tiny, "--", "sleep", "60")
		d.Must("run", "--image", tiny, "--", "true")
	}
	for _, d := range []*harness.Daemon{first, second} {
		for _, c := range d.Containers() {
			out, err := exec.Command("docker", "inspect", "-f", "{{.Config.User}}", c).Output()
			if err == nil { // one that ended is gone by now
				uids = append(uids, strings.TrimSpace(string(out)))
			}
		}
	}
	seen := map[string]bool{}
	for _, uid := range uids {
		if seen[uid] {
			t.Errorf("two running containers have the uid %s, so they share the kernel's quotas: %q", uid, uids)
		}
		seen[uid] = true
	}
	second.Kill()
	second.Start("")
	first.Must("wait", id)
	if o := first.Sbx("logs", id); o.Stdout != "done\n" {
		t.Errorf("the first daemon's job said %q", o.Stdout)
	}
	if strings.Contains(second.Log(), first.Instance()[:8]) {
		t.Errorf("the second speaks of the first's containers:\n%s", second.Log())
	}
}

// TestSlotRangeThatMeetsOthers: the files are put over the host's in a mount namespace of the daemon's own.
func TestSlotRangeThatMeetsOthers(t *testing.T) {
	first := strconv.Itoa(int(firstUID))
	for name, c := range map[string]struct{ file, line string }{
		"subuid":                      {"subuid", "alice:" + strconv.Itoa(int(firstUID)-100) + ":200\n"},
		"subgid":                      {"subgid", "alice:" + first + ":65536\n"},
		"an account":                  {"passwd", "root:x:0:0::/:/bin/sh\nbob:x:" + strconv.Itoa(int(firstUID)+7) + ":100::/:/bin/sh\n"},
		"a group":                     {"group", "root:x:0:\ncarol:x:" + strconv.Itoa(int(firstUID)+slotUIDs-1) + ":\n"},
		"a line that no one can read": {"subuid", "alice:" + first + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := harness.Prepare(t, harness.Options{Config: config(nil)})
			file := filepath.Join(t.TempDir(), c.file)
			if err := os.WriteFile(file, []byte(c.line), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat("/etc/" + c.file); err != nil {
				t.Skipf("not run: this machine has no /etc/%s to put another over", c.file)
			}
			script := fmt.Sprintf("mount --bind %s /etc/%s && exec timeout 20 %s --config %s", file, c.file, filepath.Join(d.Bin, "sandboxd"), d.Config)
			cmd := exec.Command("unshare", "-m", "sh", "-c", script)
			cmd.Env = append(os.Environ(), "NO_COLOR=1")
			out, err := cmd.CombinedOutput()
			if err == nil || cmd.ProcessState.ExitCode() == 124 {
				t.Errorf("the daemon started: %v\n%s", err, out)
			}
			if text := string(out); !strings.Contains(text, "/etc/"+c.file) || !strings.Contains(text, "slots") {
				t.Errorf("no reason in: %s", text)
			} else if !strings.Contains(text, "set [slots] uid_first and uid_count") {
				t.Errorf("no remedy in: %s", text)
			}
			if _, err := os.Stat(d.Socket); err == nil {
				t.Error("a socket was made")
			}
		})
	}
}
