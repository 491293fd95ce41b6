package engine

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Validate tells whether Create would take c; the error is a *FieldError that names the first field at fault. A field
// whose zero would mean the engine's own default must be given.
func Validate(c Container) error {
	for _, check := range []func(Container) error{
		validateIdentity, validateLimits, validateOff, validateConfinement, validateNames, validateTmpfs, validateBinds,
	} {
		if err := check(c); err != nil {
			return err
		}
	}
	return nil
}

var (
	nameForm    = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]+$`)
	imageIDForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	userForm    = regexp.MustCompile(`^[0-9]{1,10}:[0-9]{1,10}$`)
	groupForm   = regexp.MustCompile(`^[0-9]{1,10}$`)
)

func validateIdentity(c Container) error {
	switch {
	case !nameForm.MatchString(c.Name):
		return &FieldError{"Name", "letters, digits, _ . - and at least two of them"}
	case !imageIDForm.MatchString(c.Image):
		return &FieldError{"Image", "an image id, sha256: and 64 hex digits"}
	case !userForm.MatchString(c.User):
		return &FieldError{"User", "numeric uid:gid, both given"}
	case len(c.Entrypoint)+len(c.Cmd) == 0:
		return &FieldError{"Entrypoint", "must be given, or the image's own would run"}
	}
	for i, g := range c.Groups {
		if !groupForm.MatchString(g) {
			return &FieldError{fmt.Sprintf("Groups[%d]", i), "a numeric gid"}
		}
	}
	for k := range c.Labels {
		if k == "" {
			return &FieldError{"Labels", "no empty key"}
		}
	}
	return nil
}

func validateLimits(c Container) error {
	for _, limit := range []struct {
		field string
		value int64
	}{{"Memory", c.Memory}, {"NanoCPUs", c.NanoCPUs}, {"PidsLimit", c.PidsLimit}, {"ShmSize", c.ShmSize}} {
		if limit.value <= 0 || limit.value == Unlimited {
			return &FieldError{limit.field, "must be greater than 0 and limited"}
		}
	}
	if c.MemorySwap != c.Memory {
		return &FieldError{"MemorySwap", "must equal Memory, so that nothing is swapped"}
	}
	if c.OomScoreAdj < -1000 || c.OomScoreAdj > 1000 {
		return &FieldError{"OomScoreAdj", "between -1000 and 1000"}
	}
	seen := map[string]bool{}
	for i, u := range ulimits(c.Ulimits) {
		if u.Name == "" || seen[u.Name] || u.Soft == Unlimited || u.Hard == Unlimited || u.Soft > u.Hard {
			return &FieldError{fmt.Sprintf("Ulimits[%d]", i), "a name given once, 0 ≤ soft ≤ hard, never unlimited"}
		}
		seen[u.Name] = true
	}
	return nil
}

// validateOff holds the fields that exist only so that an inspection can be compared.
func validateOff(c Container) error {
	for _, off := range []struct {
		field string
		isOff bool
	}{
		{"Privileged", !c.Privileged}, {"PublishAllPorts", !c.PublishAllPorts}, {"AutoRemove", !c.AutoRemove},
		{"Tty", !c.Tty}, {"OpenStdin", !c.OpenStdin}, {"Init", !c.Init}, {"Devices", c.Devices == 0},
		{"Sysctls", c.Sysctls == 0}, {"PortBindings", c.PortBindings == 0}, {"VolumesFrom", c.VolumesFrom == 0},
		{"Links", c.Links == 0}, {"Volumes", c.Volumes == 0}, {"Healthcheck", !c.Healthcheck},
		{"PidMode", c.PidMode == ""}, {"UTSMode", c.UTSMode == ""}, {"UsernsMode", c.UsernsMode == ""},
		{"CapAdd", len(c.CapAdd) == 0}, {"Others", len(c.Others) == 0},
	} {
		if !off.isOff {
			return &FieldError{off.field, "must be off or empty"}
		}
	}
	if c.RestartPolicy != "" && c.RestartPolicy != "no" {
		return &FieldError{"RestartPolicy", `must be "no"`}
	}
	if c.LogDriver != "" && c.LogDriver != "none" {
		return &FieldError{"LogDriver", `must be "none"`}
	}
	return nil
}

func validateConfinement(c Container) error {
	switch {
	case len(c.CapDrop) != 1 || c.CapDrop[0] != "ALL":
		return &FieldError{"CapDrop", "must be ALL"}
	case c.Runtime == "":
		return &FieldError{"Runtime", "must be given by name"}
	case c.NetworkMode != "none":
		return &FieldError{"NetworkMode", `must be "none"`}
	case c.IpcMode != "none" && c.IpcMode != "private":
		return &FieldError{"IpcMode", `must be "none" or "private"`}
	case c.CgroupnsMode != "private":
		return &FieldError{"CgroupnsMode", `must be "private"`}
	case c.CgroupParent == "":
		return &FieldError{"CgroupParent", "must be given"}
	case c.MaskedPaths == nil:
		return &FieldError{"MaskedPaths", "must be given, nil means the engine's default"}
	case c.ReadonlyPaths == nil:
		return &FieldError{"ReadonlyPaths", "must be given, nil means the engine's default"}
	}
	return nil
}

// validateNames holds what the engine would otherwise take from the host or from the image.
func validateNames(c Container) error {
	switch {
	case c.Hostname == "":
		return &FieldError{"Hostname", "must be given"}
	case !cleanPath(c.WorkingDir):
		return &FieldError{"WorkingDir", "an absolute, clean path"}
	case c.StopSignal == "":
		return &FieldError{"StopSignal", "must be given"}
	case len(c.DNS) == 0:
		return &FieldError{"DNS", "must be given, or the host's servers show"}
	case len(c.DNSSearch) == 0:
		return &FieldError{"DNSSearch", `must be given ("." for none), or the host's domains show`}
	case len(c.DNSOptions) == 0:
		return &FieldError{"DNSOptions", `must be given ("ndots:1" changes nothing), or the host's options show`}
	}
	for i, e := range c.Env {
		if e == "" || strings.HasPrefix(e, "=") || strings.ContainsRune(e, 0) {
			return &FieldError{fmt.Sprintf("Env[%d]", i), "NAME=value, or NAME to take out one of the image's"}
		}
	}
	return nil
}

func validateBinds(c Container) error {
	seen := map[string]bool{}
	for i, b := range c.Binds {
		field := fmt.Sprintf("Binds[%d].", i)
		_, isTmpfs := c.Tmpfs[b.Target]
		switch {
		case !cleanPath(b.Source) || b.Source == "/":
			return &FieldError{field + "Source", "an absolute, clean path that exists, not /"}
		case !cleanPath(b.Target) || b.Target == "/":
			return &FieldError{field + "Target", "an absolute, clean path, not /"}
		case seen[b.Target] || isTmpfs:
			return &FieldError{field + "Target", "a path given once"}
		case b.Propagation != "private":
			return &FieldError{field + "Propagation", `must be "private"`}
		}
		seen[b.Target] = true
	}
	return nil
}

func cleanPath(p string) bool {
	return path.IsAbs(p) && path.Clean(p) == p && !strings.ContainsRune(p, 0)
}

// Uncovered returns the image's volumes that neither a tmpfs nor a bind of c shadows. The engine would make an
// anonymous volume for each, a piece of the host's disk under a read-only root.
func Uncovered(img Image, c Container) []string {
	targets := map[string]bool{}
	for t := range c.Tmpfs {
		targets[t] = true
	}
	for _, b := range c.Binds {
		targets[b.Target] = true
	}
	var out []string
	for _, v := range img.Volumes {
		if !targets[path.Clean(v)] {
			out = append(out, v)
		}
	}
	return out
}
