package sandbox

import (
	"encoding/json"
	"fmt"
	"slices"

	upstream "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// nativeArch is the one ABI of each machine we build for; every other ABI (i386, x32, 32-bit arm) is killed at its
// first call.
var nativeArch = map[string]specs.Arch{
	"amd64": specs.ArchX86_64,
	"arm64": specs.ArchAARCH64,
}

// Filter is the JSON of our seccomp filter for an architecture in Go's words. It is upstream's list as a container
// without capabilities gets it, less what seccomp_rules.go takes away, plus the conditional rules there.
//
// Two habits of the tools below shape it. libseccomp compares 64 bits of an argument while the kernel often looks at
// 32 or 16 of them, so every comparison that could be dodged by upper bits is a masked one. And runc joins two
// conditions on one argument by OR, so a denial is written as the complement of what it denies, as a union of masks.
func Filter(arch string) (string, error) {
	native, ok := nativeArch[arch]
	if !ok {
		return "", fmt.Errorf("seccomp filter for %s: %w", arch, ErrNotSupported)
	}
	errno := uint(errnoEPERM)
	f := specs.LinuxSeccomp{
		DefaultAction:   specs.ActErrno,
		DefaultErrnoRet: &errno,
		Architectures:   []specs.Arch{native},
		Syscalls:        []specs.LinuxSyscall{{Names: plainCalls(arch), Action: specs.ActAllow}},
	}
	for _, r := range conditionalRules {
		f.Syscalls = append(f.Syscalls, r.syscalls()...)
	}
	text, err := json.Marshal(f)
	return string(text), err
}

// plainCalls are the names allowed whatever their arguments.
func plainCalls(arch string) []string {
	var names []string
	for _, group := range upstream.DefaultProfile().Syscalls {
		if group.Action == specs.ActAllow && len(group.Args) == 0 && withoutCapabilities(group, arch) {
			names = append(names, group.Names...)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		_, gone := takenAway[name]
		return gone || slices.ContainsFunc(conditionalRules, func(r rule) bool { return slices.Contains(r.names, name) })
	})
	slices.Sort(names)
	return slices.Compact(names)
}

func withoutCapabilities(group *upstream.Syscall, arch string) bool {
	if in := group.Includes; in != nil {
		if len(in.Caps) > 0 || len(in.Arches) > 0 && !slices.Contains(in.Arches, arch) {
			return false
		}
	}
	return group.Excludes == nil || !slices.Contains(group.Excludes.Arches, arch)
}

// rule is one line of conditionalRules: the calls get the action when one of the alternatives holds.
type rule struct {
	names []string
	errno uint          // 0 allows
	when  []alternative // none: always
}

// alternative holds when all its conditions hold. No two of them may look at the same argument.
type alternative []specs.LinuxSeccompArg

func (r rule) syscalls() []specs.LinuxSyscall {
	action, errno := specs.ActAllow, (*uint)(nil)
	if r.errno != 0 {
		action, errno = specs.ActErrno, &r.errno
	}
	if len(r.when) == 0 {
		return []specs.LinuxSyscall{{Names: r.names, Action: action, ErrnoRet: errno}}
	}
	var out []specs.LinuxSyscall
	for _, args := range r.when {
		out = append(out, specs.LinuxSyscall{Names: r.names, Action: action, ErrnoRet: errno, Args: args})
	}
	return out
}

// equal holds when all 64 bits of the argument are value; for allowing only, since garbage above then denies.
func equal(arg uint, value uint64) specs.LinuxSeccompArg {
	return specs.LinuxSeccompArg{Index: arg, Value: value, Op: specs.OpEqualTo}
}

// masked holds when the argument's bits under mask are value.
func masked(arg uint, mask, value uint64) specs.LinuxSeccompArg {
	return specs.LinuxSeccompArg{Index: arg, Value: mask, ValueTwo: value, Op: specs.OpMaskedEqual}
}

// clear holds when no bit of mask is set.
func clear(arg uint, mask uint64) specs.LinuxSeccompArg { return masked(arg, mask, 0) }

// noneOf gives the alternatives that together hold exactly when the low 32 bits of the argument are none of the values:
// at each bit, from the highest, the half that holds no value is taken whole.
func noneOf(arg uint, values ...uint32) []alternative {
	var out []alternative
	var split func(prefix uint32, bit int, within []uint32)
	split = func(prefix uint32, bit int, within []uint32) {
		if len(within) == 0 {
			mask := ^uint32(0) << (bit + 1)
			out = append(out, alternative{masked(arg, uint64(mask), uint64(prefix))})
			return
		}
		if bit < 0 {
			return
		}
		one := uint32(1) << bit
		for _, half := range []uint32{0, one} {
			split(prefix|half, bit-1, slices.DeleteFunc(slices.Clone(within), func(v uint32) bool { return v&one != half }))
		}
	}
	split(0, 31, values)
	return out
}
