package posture_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// devices that a container may have: none of them leads anywhere.
var harmlessDevices = []string{"/dev/full 1:7", "/dev/null 1:3", "/dev/random 1:8", "/dev/tty 5:0", "/dev/urandom 1:9", "/dev/zero 1:5", "/dev/pts/ptmx 5:2", "/dev/console 136:0",
	// /dev/null over a file of the kernel's
	"/sys/kernel/notes 1:3", "/sys/kernel/vmcoreinfo 1:3"}

var sensitiveName = regexp.MustCompile(`(?i)pass|secret|token|_key|credential|aws_|docker_|kube|ssh_`)

// evaluate is what amicontained, deepce and CDK's evaluate look for, as one list of findings.
func evaluate(t *testing.T, w *world) {
	var findings []string
	add := func(format string, a ...any) { findings = append(findings, fmt.Sprintf(format, a...)) }

	for _, l := range w.said(t, "status") {
		switch {
		case strings.HasPrefix(l.Call, "Cap") && strings.Trim(l.Detail, "0") != "":
			add("capabilities: %s %s", l.Call, l.Detail)
		case l.Call == "Seccomp" && l.Detail != "2", l.Call == "NoNewPrivs" && l.Detail != "1":
			add("%s %s", l.Call, l.Detail)
		}
	}
	for row, calls := range plainCalls { // blocked system calls
		for _, c := range calls {
			if l := find(t, w.said(t, "calls"), c.key(row)); row != 0 && l.Errno == "OK" {
				add("system call: %s", c.name)
			}
		}
	}
	lines := w.said(t, "read")
	file := func(path string) line { return find(t, lines, path) }
	for text := range strings.Lines(file("/proc/self/mountinfo").Detail) {
		own, super, _ := strings.Cut(text, " - ")
		target, kind, source := strings.Fields(own)[4], strings.Fields(super)[0], strings.Fields(super)[1]
		switch {
		case strings.Contains(text, "lxcfs"), strings.Contains(kind, "fuse"):
			add("mount: lxcfs or FUSE: %s", text)
		case strings.HasPrefix(source, "/dev/") && !strings.HasPrefix(target, "/etc/") && !strings.HasPrefix(target, "/sbx/") && target != "/mnt/probe":
			add("mount: a device on %s", target)
		case strings.HasPrefix(source, "/dev/") && !strings.Contains(","+strings.Fields(own)[5]+",", ",ro,"):
			add("mount: %s of the host's disk is writable", target)
		case kind == "cgroup" && !strings.Contains(","+strings.Fields(own)[5]+",", ",ro,"):
			add("mount: %s is writable", target)
		}
	}
	for _, l := range w.said(t, "walk") {
		switch l.Call {
		case "socket", "fifo", "block", "setid", "capability", "writable file", "writable block":
			add("%s %s", l.Call, l.Detail)
		case "character":
			if !slices.Contains(harmlessDevices, l.Detail) {
				add("device %s", l.Detail)
			}
		case "writable folder":
			if !slices.Contains(writable, l.Detail) && l.Detail != "/dev/mqueue" { // nothing can be made there, see row 31
				add("writable folder %s", l.Detail)
			}
		}
	}
	for _, l := range w.said(t, "env") {
		if sensitiveName.MatchString(l.Call) && l.Call != secretName {
			add("environment: %s", l.Call)
		}
	}
	for _, l := range w.said(t, "reach") { // the metadata service among them
		if l.Errno == "OK" && l.Call != "interfaces" {
			add("reaches %s", l.Call)
		}
	}
	for path, want := range map[string]string{
		"/proc/sys/net/ipv4/conf/all/route_localnet": "0\n", "/proc/sys/kernel/randomize_va_space": "2\n", "/proc/1/comm": "sbx-init\n",
	} {
		if got := file(path).Detail; got != want {
			add("%s is %q", path, got)
		}
	}
	if l := file("/proc/2/comm"); strings.Contains(l.Detail, "kthreadd") {
		add("the host's processes show")
	}
	e := w.run(t, "--", probeAt, "read", "/var/run/secrets", "/run/secrets", "/root/.ssh", "/root/.docker", "/home/job/.ssh", "/etc/shadow", "/.docker", "/var/run/docker.sock", "/run/containerd",
		"/proc/1/root", "/etc/kubernetes", "/root/.kube", "/var/lib/kubelet", "/root/.aws", "/root/.config/gcloud")
	for _, l := range linesOf(e.output) {
		if l.Errno == "OK" {
			add("file %s %.100s", l.Call, l.Detail)
		}
	}
	slices.Sort(findings)
	for _, f := range findings {
		t.Error(f)
	}
}

// cis are the checks of section 5 of the CIS Docker Benchmark, over the inspection of a running job.
func cis(t *testing.T, w *world) {
	w.take(t, 1)
	id := w.start(t, "--", "sleep", "300")
	p := w.place(t, id)
	c := inspect(t, p.container)
	w.kill(t, id)
	h := func(field string) string { return at(c["HostConfig"], field) }
	is := func(field string, wants ...string) func() bool {
		return func() bool { return slices.Contains(wants, h(field)) }
	}
	absent := func(field string) func() bool { return is(field, "null", "[]", "{}", `""`, "0", "false") }
	mounts := at(c, "Mounts")
	swarm := strings.TrimSpace(docker(t, "info", "-f", "{{.Swarm.LocalNodeState}}"))
	lsm, _ := os.ReadFile("/sys/kernel/security/lsm")
	for _, check := range []struct {
		n    string
		what string
		ok   func() bool
		warn bool // allowed to warn
	}{
		{"5.1", "swarm mode is off", func() bool { return swarm == "inactive" }, false},
		{"5.2", "an AppArmor profile", func() bool { return at(c, "AppArmorProfile") == `"docker-default"` }, !strings.Contains(string(lsm), "apparmor")},
		{"5.3", "SELinux options", func() bool { return strings.Contains(h("SecurityOpt"), "label") }, !strings.Contains(string(lsm), "selinux")},
		{"5.4", "capabilities are restricted", func() bool { return h("CapAdd") == "null" && h("CapDrop") == `["ALL"]` }, false},
		{"5.5", "not privileged", is("Privileged", "false"), false},
		{"5.6", "no sensitive host folder", func() bool {
			return !regexp.MustCompile(`"Source":"(/|/boot|/dev|/etc|/lib|/proc|/sys|/usr|/var|/root)"`).MatchString(mounts)
		}, false},
		{"5.7", "no sshd", func() bool { return at(c, "Path") == `"/sbx/bin/sbx-init"` }, false},
		{"5.8", "no privileged port", absent("PortBindings"), false},
		{"5.9", "no open port", func() bool { return at(c, "NetworkSettings.Ports") == "{}" && h("PublishAllPorts") == "false" }, false},
		{"5.10", "not the host's network", is("NetworkMode", `"none"`), false},
		{"5.11", "memory is limited", func() bool { return h("Memory") != "0" && h("Memory") == h("MemorySwap") }, false},
		{"5.12", "cpu is limited", func() bool { return h("NanoCpus") != "0" }, false},
		{"5.13", "the root is read-only", is("ReadonlyRootfs", "true"), false},
		{"5.14", "incoming traffic is bound to an interface", absent("PortBindings"), false},
		{"5.15", "restarts are bounded", func() bool { return at(c, "HostConfig.RestartPolicy.Name") == `"no"` }, false},
		{"5.16", "not the host's processes", absent("PidMode"), false},
		{"5.17", "not the host's IPC", is("IpcMode", `"none"`), false},
		{"5.18", "no host device", func() bool {
			return absent("Devices")() && absent("DeviceCgroupRules")() && absent("DeviceRequests")()
		}, false},
		{"5.19", "ulimits are set", func() bool { return strings.Contains(h("Ulimits"), "nofile") }, false},
		{"5.20", "propagation is not shared", func() bool { return !strings.Contains(mounts, `"shared"`) && !strings.Contains(mounts, `"rshared"`) }, false},
		{"5.21", "not the host's UTS", absent("UTSMode"), false},
		{"5.22", "seccomp is on", func() bool {
			return strings.Contains(h("SecurityOpt"), "seccomp=") && !strings.Contains(h("SecurityOpt"), "unconfined")
		}, false},
		{"5.23", "no exec as privileged", func() bool { return at(c, "ExecIDs") == "null" }, false},
		{"5.24", "no exec as root", func() bool { return at(c, "ExecIDs") == "null" }, false},
		{"5.25", "the cgroup is the daemon's own", is("CgroupParent", `"/sandboxd-`+w.d.Instance()[:8]+`"`), false},
		{"5.26", "no new privileges", func() bool { return strings.Contains(h("SecurityOpt"), `"no-new-privileges"`) }, false},
		{"5.27", "a health check", func() bool { return !strings.Contains(at(c, "Config.Healthcheck"), "NONE") }, true},
		{"5.28", "made of an image id, not of a moving name", func() bool { return strings.HasPrefix(at(c, "Config.Image"), `"sha256:`) }, false},
		{"5.29", "processes are limited", func() bool { return h("PidsLimit") != "0" && h("PidsLimit") != "-1" && h("PidsLimit") != "null" }, false},
		{"5.30", "not on the default bridge", func() bool { return at(c, "NetworkSettings.Networks.bridge") == "null" }, false},
		{"5.31", "not the host's user namespace by wish", absent("UsernsMode"), false},
		{"5.32", "no socket of the engine", func() bool { return !strings.Contains(mounts, "docker.sock") }, false},
	} {
		switch ok := check.ok(); {
		case ok:
		case check.warn:
			t.Logf("%s warns, as allowed: %s", check.n, check.what)
		default:
			t.Errorf("%s: not so: %s", check.n, check.what)
		}
	}
}
