package engine

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/docker/docker/api/types/container"
)

// Settings that read turns into fields of Container, or that are harmless. Any other setting of the SDK's structs that
// is not zero, known today or added by a later SDK, is reported among the others.
var (
	readOfConfig = names(`Hostname User Tty OpenStdin Env Cmd Healthcheck Image WorkingDir Entrypoint Labels StopSignal`,
		// Declared by the image: ports are published by PortBindings only, volumes show among the mount points.
		`ExposedPorts Volumes`)
	readOfHost = names(`LogConfig NetworkMode PortBindings RestartPolicy AutoRemove VolumesFrom CapAdd CapDrop CgroupnsMode
		DNS DNSOptions DNSSearch ExtraHosts GroupAdd IpcMode Links OomScoreAdj PidMode Privileged PublishAllPorts ReadonlyRootfs
		SecurityOpt Tmpfs UTSMode UsernsMode ShmSize Sysctls Runtime Mounts MaskedPaths ReadonlyPaths Init`,
		`Resources`) // looked into below
	readOfResources = names(`Memory NanoCPUs CgroupParent Devices DeviceCgroupRules DeviceRequests MemorySwap PidsLimit Ulimits`)
)

func names(lists ...string) map[string]bool {
	out := map[string]bool{}
	for _, list := range lists {
		for name := range strings.FieldsSeq(list) {
			out[name] = true
		}
	}
	return out
}

// others names the settings that are on and that no field of Container speaks of.
func others(config *container.Config, host *container.HostConfig) []string {
	out := set("Config", reflect.ValueOf(*config), readOfConfig)
	out = append(out, set("HostConfig", reflect.ValueOf(*host), readOfHost)...)
	out = append(out, set("HostConfig", reflect.ValueOf(host.Resources), readOfResources)...)
	if host.RestartPolicy.MaximumRetryCount != 0 {
		out = append(out, "HostConfig.RestartPolicy.MaximumRetryCount")
	}
	for _, u := range host.Ulimits {
		// An Ulimit of ours cannot say this: it would be taken for an equal pair.
		if u != nil && (u.Soft == 0) != (u.Hard == 0) {
			out = append(out, oneLine(fmt.Sprintf("HostConfig.Ulimits=%s %d:%d", u.Name, u.Soft, u.Hard)))
		}
	}
	return out
}

func set(prefix string, v reflect.Value, known map[string]bool) []string {
	var out []string
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if known[name] || isOff(v.Field(i)) {
			continue
		}
		out = append(out, oneLine(fmt.Sprintf("%s.%s=%v", prefix, name, reflect.Indirect(v.Field(i)))))
	}
	return out
}

// isOff: zero, empty, or a pointer to such.
func isOff(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	case reflect.Pointer:
		return v.IsNil() || isOff(v.Elem())
	default:
		return v.IsZero()
	}
}
