package engine

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Normal returns the canonical form of c, in which what was asked and what an inspection found can be compared field by
// field. Empty lists become nil (the masked and read-only paths keep the difference between none and the engine's
// default), capabilities, ulimits and binds are sorted, the limits 0 and -1 become Unlimited, and the words "no" and
// "none" are filled in. It shares no memory with c.
func Normal(c Container) Container {
	for _, list := range []*[]string{&c.Entrypoint, &c.Cmd, &c.Env, &c.Groups, &c.SecurityOpt, &c.DNS, &c.DNSSearch, &c.DNSOptions, &c.ExtraHosts, &c.Others} {
		*list = copied(*list)
	}
	c.CapAdd, c.CapDrop = capabilities(c.CapAdd), capabilities(c.CapDrop)
	c.MaskedPaths, c.ReadonlyPaths = slices.Clone(c.MaskedPaths), slices.Clone(c.ReadonlyPaths)
	if c.Labels = maps.Clone(c.Labels); len(c.Labels) == 0 {
		c.Labels = nil
	}
	if c.Tmpfs = maps.Clone(c.Tmpfs); len(c.Tmpfs) == 0 {
		c.Tmpfs = nil
	}
	for _, limit := range []*int64{&c.Memory, &c.MemorySwap, &c.NanoCPUs, &c.PidsLimit} {
		if *limit <= 0 {
			*limit = Unlimited
		}
	}
	c.Ulimits = ulimits(c.Ulimits)
	if c.Binds = slices.Clone(c.Binds); len(c.Binds) == 0 {
		c.Binds = nil
	}
	slices.SortFunc(c.Binds, func(a, b Bind) int { return cmp.Compare(a.Target, b.Target) })
	c.RestartPolicy = cmp.Or(c.RestartPolicy, "no")
	c.LogDriver = cmp.Or(c.LogDriver, "none")
	return c
}

func copied(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return slices.Clone(list)
}

// capabilities writes them the engine's way: upper case, CAP_ in front of all but ALL.
func capabilities(list []string) []string {
	out := copied(list)
	for i, c := range out {
		if c = strings.ToUpper(c); c != "ALL" && !strings.HasPrefix(c, "CAP_") {
			c = "CAP_" + c
		}
		out[i] = c
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func ulimits(list []Ulimit) []Ulimit {
	if len(list) == 0 {
		return nil
	}
	out := slices.Clone(list)
	for i := range out {
		u := &out[i]
		if u.Soft == 0 {
			u.Soft = u.Hard
		}
		if u.Hard == 0 {
			u.Hard = u.Soft
		}
		if u.Soft < 0 {
			u.Soft = Unlimited
		}
		if u.Hard < 0 {
			u.Hard = Unlimited
		}
	}
	slices.SortFunc(out, func(a, b Ulimit) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Inherited adds to c, in normal form, what the engine takes from the image however it is asked: variables and labels not given, and
// nothing else, as every other field is. A variable given without "=" keeps the image's of that name out.
func Inherited(c Container, img Image) Container {
	c = Normal(c)
	given := map[string]bool{}
	for _, e := range c.Env {
		given[variable(e)] = true
	}
	for _, e := range img.Env {
		if !given[variable(e)] {
			c.Env = append(c.Env, e)
		}
	}
	for k, v := range img.Labels {
		if _, isGiven := c.Labels[k]; !isGiven {
			if c.Labels == nil {
				c.Labels = map[string]string{}
			}
			c.Labels[k] = v
		}
	}
	return c
}

func variable(e string) string {
	name, _, _ := strings.Cut(e, "=")
	return name
}
