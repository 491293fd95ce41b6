package engine_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/engine"
)

// asked returns the request body Create sends for c, and a record that an engine would give back for it.
func asked(t *testing.T, c engine.Container) map[string]any {
	t.Helper()
	var body map[string]any
	s := newStub(t, "1.24", "1.41").on("GET /images/"+imageID+"/json", says(200, imageAnswer)).
		on("POST /containers/create", func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			if err := json.Unmarshal(raw, &body); err != nil {
				t.Error(err)
			}
			if r.FormValue("name") != c.Name {
				t.Errorf("name %q", r.FormValue("name"))
			}
			says(201, `{"Id":"`+strings.Repeat("a", 64)+`","Warnings":["w"]}`)(w, r)
		})
	made, err := s.client(t).Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(made.ID) != 64 || !slices.Equal(made.Warnings, []string{"w"}) {
		t.Fatalf("created %+v", made)
	}
	return body
}

// inspected has the stub answer an inspection with the body of a create, changed by change.
func inspected(t *testing.T, c engine.Container, change func(config, host, all map[string]any)) engine.Container {
	t.Helper()
	config := asked(t, c)
	host := config["HostConfig"].(map[string]any)
	delete(config, "HostConfig")
	all := map[string]any{"Id": "x", "Name": "/" + c.Name, "Image": c.Image, "State": map[string]any{"Status": "created"}, "Config": config, "HostConfig": host}
	var points []any
	if list, isList := host["Mounts"].([]any); isList {
		for _, m := range list {
			m := m.(map[string]any)
			points = append(points, map[string]any{"Type": "bind", "Source": m["Source"], "Destination": m["Target"], "RW": m["ReadOnly"] != true, "Propagation": "private"})
		}
	}
	all["Mounts"] = points
	change(config, host, all)
	record, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	s := newStub(t, "1.24", "1.41").on("GET /containers/x1/json", says(200, string(record)))
	got, _, err := s.client(t).Inspect(t.Context(), "x1")
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func withBinds() engine.Container {
	c := sample()
	c.Binds = []engine.Bind{{Source: "/a", Target: "/ro", ReadOnly: true, Propagation: "private"}, {Source: "/b", Target: "/rw", Propagation: "private"}}
	return c
}

func TestWhatIsSentIsWhatWasAskedAndLeavesNoDefault(t *testing.T) {
	c := withBinds()
	c.MaskedPaths, c.ReadonlyPaths, c.Cmd = []string{}, []string{}, nil
	body := asked(t, c)
	host := body["HostConfig"].(map[string]any)
	for path, want := range map[string]any{
		"Cmd": []any{}, "Healthcheck.Test": []any{"NONE"}, "Tty": false, "OpenStdin": false, "Volumes": nil,
		"HostConfig.Init": false, "HostConfig.OomKillDisable": false, "HostConfig.MemorySwappiness": nil,
		"HostConfig.MaskedPaths": []any{}, "HostConfig.ReadonlyPaths": []any{}, "HostConfig.Binds": nil,
		"HostConfig.LogConfig.Type": "none", "HostConfig.RestartPolicy.Name": "no", "HostConfig.CapDrop": []any{"ALL"},
		"HostConfig.CapAdd": nil, "HostConfig.AutoRemove": false, "HostConfig.Privileged": false, "HostConfig.CpusetCpus": "",
		"HostConfig.Memory": float64(c.Memory), "HostConfig.MemorySwap": float64(c.Memory), "HostConfig.PidsLimit": float64(c.PidsLimit),
		"NetworkingConfig.EndpointsConfig": map[string]any{},
	} {
		got := any(body)
		for key := range strings.SplitSeq(path, ".") {
			got = got.(map[string]any)[key]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	first := host["Mounts"].([]any)[0].(map[string]any)
	want := map[string]any{"Type": "bind", "Source": "/a", "Target": "/ro", "ReadOnly": true, "BindOptions": map[string]any{"Propagation": "private", "NonRecursive": true}}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
}

// What an engine may write for "no limit" never equals a number, whatever number was asked.
func TestUnlimitedIsNeverANumber(t *testing.T) {
	fields := map[string]func(engine.Container) int64{
		"Memory":     func(c engine.Container) int64 { return c.Memory },
		"MemorySwap": func(c engine.Container) int64 { return c.MemorySwap },
		"NanoCpus":   func(c engine.Container) int64 { return c.NanoCPUs },
		"PidsLimit":  func(c engine.Container) int64 { return c.PidsLimit },
	}
	for field, read := range fields {
		for name, value := range map[string]any{"0": 0, "-1": -1, "null": nil, "absent": "absent"} {
			t.Run(field+" "+name, func(t *testing.T) {
				got := inspected(t, sample(), func(_, host, _ map[string]any) {
					if host[field] = value; value == "absent" {
						delete(host, field)
					}
				})
				if read(got) != engine.Unlimited {
					t.Errorf("%d, want unlimited", read(got))
				}
			})
		}
	}
}

func TestAnInspectionReportsEveryChange(t *testing.T) {
	c := withBinds()
	want := engine.Normal(c)
	if diff := cmp.Diff(want, inspected(t, c, func(_, _, _ map[string]any) {})); diff != "" {
		t.Fatalf("unchanged: %s", diff)
	}
	type obj = map[string]any
	for name, change := range map[string]func(config, host, all obj){
		"privileged":         func(_, h, _ obj) { h["Privileged"] = true },
		"null masked paths":  func(_, h, _ obj) { h["MaskedPaths"] = nil },
		"no masked path":     func(_, h, _ obj) { h["MaskedPaths"] = []any{} },
		"init by default":    func(_, h, _ obj) { delete(h, "Init") },
		"log driver default": func(_, h, _ obj) { h["LogConfig"] = obj{} },
		"restart":            func(_, h, _ obj) { h["RestartPolicy"] = obj{"Name": "always"} },
		"restart count":      func(_, h, _ obj) { h["RestartPolicy"] = obj{"Name": "no", "MaximumRetryCount": 3} },
		"a device":           func(_, h, _ obj) { h["Devices"] = []any{obj{"PathOnHost": "/dev/sda"}} },
		"a device rule":      func(_, h, _ obj) { h["DeviceCgroupRules"] = []any{"a *:* rwm"} },
		"a gpu":              func(_, h, _ obj) { h["DeviceRequests"] = []any{obj{"Count": -1}} },
		"a sysctl":           func(_, h, _ obj) { h["Sysctls"] = obj{"net.ipv4.ip_forward": "1"} },
		"a port":             func(_, h, _ obj) { h["PortBindings"] = obj{"80/tcp": []any{obj{"HostPort": "80"}}} },
		"volumes from":       func(_, h, _ obj) { h["VolumesFrom"] = []any{"x"} },
		"a legacy bind":      func(_, h, _ obj) { h["Binds"] = []any{"/:/host"} },
		"a cpuset":           func(_, h, _ obj) { h["CpusetCpus"] = "0" },
		"a quota":            func(_, h, _ obj) { h["CpuQuota"] = 100000 },
		"an annotation":      func(_, h, _ obj) { h["Annotations"] = obj{"a": "b"} },
		"a storage option":   func(_, h, _ obj) { h["StorageOpt"] = obj{"size": "1G"} },
		"no oom kill":        func(_, h, _ obj) { h["OomKillDisable"] = true },
		"another cgroup":     func(_, h, _ obj) { h["Cgroup"] = "container:x" },
		"host pids":          func(_, h, _ obj) { h["PidMode"] = "host" },
		"host users":         func(_, h, _ obj) { h["UsernsMode"] = "host" },
		"another ulimit": func(_, h, _ obj) {
			h["Ulimits"] = append(h["Ulimits"].([]any), obj{"Name": "nproc", "Soft": 1, "Hard": 1})
		},
		"soft limit of 0": func(_, h, _ obj) {
			h["Ulimits"] = append(h["Ulimits"].([]any), obj{"Name": "nproc", "Soft": 0, "Hard": 1})
		},
		"a domain":       func(c, _, _ obj) { c["Domainname"] = "example.org" },
		"a stop timeout": func(c, _, _ obj) { c["StopTimeout"] = 3 },
		"a health check": func(c, _, _ obj) { c["Healthcheck"] = obj{"Test": []any{"CMD", "x"}} },
		"a variable":     func(c, _, _ obj) { c["Env"] = append(c["Env"].([]any), "LD_PRELOAD=x") },
		"a tmpfs option": func(_, h, _ obj) { h["Tmpfs"].(obj)["/tmp"] = "exec" },
		"a volume": func(_, _, a obj) {
			a["Mounts"] = append(a["Mounts"].([]any), obj{"Type": "volume", "Name": "v", "Destination": "/v"})
		},
		"an unasked mount": func(_, _, a obj) {
			a["Mounts"] = append(a["Mounts"].([]any), obj{"Type": "bind", "Source": "/", "Destination": "/x"})
		},
		"a mount not made":      func(_, _, a obj) { a["Mounts"] = nil },
		"a bind made writable":  func(_, _, a obj) { a["Mounts"].([]any)[0].(obj)["RW"] = true },
		"a shared bind":         func(_, _, a obj) { a["Mounts"].([]any)[0].(obj)["Propagation"] = "rshared" },
		"another source":        func(_, _, a obj) { a["Mounts"].([]any)[0].(obj)["Source"] = "/etc" },
		"a mount point is made": func(_, h, _ obj) { h["Mounts"].([]any)[0].(obj)["BindOptions"].(obj)["CreateMountpoint"] = true },
		"a recursive bind":      func(_, h, _ obj) { h["Mounts"].([]any)[0].(obj)["BindOptions"].(obj)["NonRecursive"] = false },
		"an image mount": func(_, h, _ obj) {
			h["Mounts"] = append(h["Mounts"].([]any), obj{"Type": "image", "Source": "i", "Target": "/i"})
		},
		"another image": func(_, _, a obj) { a["Image"] = "sha256:other" },
	} {
		t.Run(name, func(t *testing.T) {
			if got := inspected(t, c, change); cmp.Equal(want, got) {
				t.Error("the change does not show")
			}
		})
	}
	t.Run("a client older than recursive read-only", func(t *testing.T) {
		got := inspected(t, c, func(_, h, _ obj) {
			h["Mounts"].([]any)[0].(obj)["BindOptions"].(obj)["ReadOnlyNonRecursive"] = true
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// Every field of the SDK's structs is either read or must be zero. A name that no longer exists would let a renamed
// setting pass.
func TestTheSettingsReadExistInTheSDK(t *testing.T) {
	config, host, resources := engine.Settings()
	for _, c := range []struct {
		names map[string]bool
		of    reflect.Type
	}{{config, reflect.TypeFor[container.Config]()}, {host, reflect.TypeFor[container.HostConfig]()}, {resources, reflect.TypeFor[container.Resources]()}} {
		for name := range c.names {
			if _, exists := c.of.FieldByName(name); !exists {
				t.Errorf("%v has no field %s", c.of, name)
			}
		}
	}
}

func TestAContainersState(t *testing.T) {
	record := func(state string) string {
		return fmt.Sprintf(`{"Id":"x","Name":"/n","Image":"i","State":%s,"Config":{"Labels":{"a":"b"}},"HostConfig":{}}`, state)
	}
	s := newStub(t, "1.24", "1.51").on("GET /containers/x1/json", says(200, record(
		`{"Status":"exited","ExitCode":137,"OOMKilled":true,"Error":"two\nlines","StartedAt":"2026-01-02T03:04:05.6Z","FinishedAt":"0001-01-01T00:00:00Z"}`)))
	_, got, err := s.client(t).Inspect(t.Context(), "x1")
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != "x" || got.Name != "n" || got.Status != "exited" || got.ExitCode != 137 || !got.OOMKilled || got.Error != "two lines" ||
		got.StartedAt.Unix() != 1767323045 || !got.FinishedAt.IsZero() || got.Labels["a"] != "b" || got.Image != "i" {
		t.Errorf("state %+v", got)
	}
}
