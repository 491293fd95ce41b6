package server_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"sandboxd/api"
	"sandboxd/internal/job"
	"sandboxd/internal/server"
)

// curler runs curl as a real user against the real socket.
type curler struct {
	t    *testing.T
	uid  uint32
	path string
}

// run returns the body and, on the last line, the status.
func (c curler) run(args ...string) (body, status string) {
	c.t.Helper()
	cmd := exec.Command("curl", append([]string{"-sS", "--max-time", "10", "-w", "\n%{http_code}", "--unix-socket", c.path}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: c.uid, Gid: c.uid}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("curl %q: %v\n%s", args, err, out)
	}
	at := strings.LastIndexByte(string(out), '\n')
	return string(out[:at]), string(out[at+1:])
}

func (c curler) want(status string, args ...string) string {
	c.t.Helper()
	body, got := c.run(args...)
	if got != status {
		c.t.Fatalf("curl %q: status %s, want %s\n%s", args, got, status, body)
	}
	return body
}

// curl --unix-socket is enough to use the API, and two users do not see each other's jobs.
func TestASessionWithCurl(t *testing.T) {
	needRoot(t)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl")
	}
	r := newRig(t)
	path := r.dir + "/d/host.sock"
	s, err := server.Listen(server.ListenConfig{Path: path, Mode: 0o666})
	must(t, err)
	r.serve(s)
	me, other, root := curler{t, alice, path}, curler{t, bob, path}, curler{t, 0, path}
	const base = "http://sandboxd/v1"

	me.want("200", base+"/version")
	var j api.Job
	must(t, json.Unmarshal([]byte(me.want("201", base+"/jobs", "-d", `{"command":["cat"],"name":"copy","stdin_stream":true}`)), &j))
	if j.Owner != "uid:1001" {
		t.Errorf("owner %q", j.Owner)
	}

	other.want("404", base+"/jobs/"+j.ID)
	other.want("404", base+"/jobs/copy")
	other.want("404", base+"/jobs/"+j.ID+"/cancel", "-X", "POST")
	if body := other.want("200", base+"/jobs"); strings.Contains(body, j.ID) {
		t.Errorf("another user lists it: %s", body)
	}
	root.want("200", base+"/jobs/"+j.ID)

	taken := make(chan string, 1)
	r.daemon.mu.Lock()
	running := r.daemon.jobs[job.ID(j.ID)]
	running.State = job.Running
	r.daemon.jobs[job.ID(j.ID)] = running
	r.daemon.mu.Unlock()
	go func() {
		in := r.opened(running)
		taken <- string(<-in.takes)
	}()
	me.want("204", base+"/jobs/copy/stdin", "-T", "/etc/os-release")
	r.daemon.stream(running.ID).write(<-taken)

	me.want("202", base+"/jobs/copy/result?wait=10ms")
	r.daemon.finish(running.ID)
	if body := me.want("200", base+"/jobs/copy/result?wait=10s"); !strings.Contains(body, `"status":"success"`) {
		t.Error(body)
	}
	me.want("200", base+"/jobs/copy/stream?follow=true")
	me.want("200", base+"/jobs/copy/cancel", "-X", "POST")
	me.want("400", base+"/jobs", "-d", `{"commnad":["x"]}`)
	me.want("405", base+"/jobs", "-X", "DELETE")
	me.want("404", "--path-as-is", base+"/jobs/../x")
	me.want("400", "--path-as-is", base+"/jobs/..")
	me.want("400", base+"/jobs/%2e%2e")
	me.want("200", base+"/events")
	me.want("200", base+"/profiles")
	me.want("200", base+"/health")
}
