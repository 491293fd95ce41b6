package sandbox

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sandboxd/internal/engine"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

const (
	pageSize = 4096
	// runBytes and runInodes bound /run, which holds pid files and sockets.
	runBytes, runInodes = 1 << 20, 1024
	// maxVolumes an image may declare; each costs a tmpfs of at least minVolume.
	maxVolumes = 8
	minVolume  = 1 << 20
)

// tmpfsMounts are all places a job can write to. They are charged to the job's memory, so their sum stays below it.
func tmpfsMounts(p envelope.Posture, f Facts) (map[string]string, error) {
	room := p.Memory - envelope.TmpfsReserve - p.TmpBytes - p.HomeBytes - p.OutBytes
	if room < 0 {
		return nil, job.Errorf(job.CodeInvalid, "memory", "%d bytes cannot hold tmp, home and out, and %d beside them", p.Memory, envelope.TmpfsReserve)
	}
	home := "noexec"
	if p.HomeExec {
		home = "exec"
	}
	out := map[string]string{
		PathTmp:  tmpfs("noexec", p.TmpBytes, p.Inodes, f.UID, "1777"),
		PathHome: tmpfs(home, p.HomeBytes, p.Inodes, f.UID, "0700"),
		PathOut:  tmpfs("noexec", p.OutBytes, p.Inodes, f.UID, "0755"),
		PathRun:  tmpfs("noexec", runBytes, min(runInodes, p.Inodes), f.UID, "0755"),
	}
	volumes, err := shadowed(f.ImageVolumes, f.Binds)
	for _, v := range volumes {
		size := max(minVolume, min(p.TmpBytes, room/int64(len(volumes))))
		out[v] = tmpfs("noexec", size, p.Inodes, f.UID, "0755")
	}
	return out, err
}

func tmpfs(exec string, size, inodes int64, uid uint32, mode string) string {
	return fmt.Sprintf("rw,nosuid,nodev,%s,size=%d,nr_inodes=%d,uid=%d,gid=%d,mode=%s", exec, size&^(pageSize-1), inodes, uid, uid, mode)
}

// ownPlaces are the paths that are ours inside a container. Those with true may be declared as volumes: our own mount
// covers them.
var ownPlaces = map[string]bool{
	PathTmp: true, PathHome: true, PathOut: true, PathRun: true,
	PathWorkspace: false, PathData: false, PathMnt: false, "/sbx": false, "/proc": false, "/sys": false, "/dev": false, "/etc": false,
}

// shadowed returns the volumes of an image that need a tmpfs, which keeps the host's disk out of the container.
func shadowed(volumes []string, binds []Bind) ([]string, error) {
	var out []string
	for _, v := range volumes {
		at := path.Clean("/" + v)
		if ownPlaces[at] || slices.ContainsFunc(binds, func(b Bind) bool { return b.Target == at }) {
			continue
		}
		for own := range ownPlaces {
			if covers(at, own) || covers(own, at) {
				return nil, unfit("its volume %.128q meets %s, which is ours", v, own)
			}
		}
		out = append(out, at)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if len(out) > maxVolumes {
		return nil, unfit("it declares %d volumes, at most %d can be shadowed", len(out), maxVolumes)
	}
	return out, nil
}

// covers says whether a mount at dir hides p.
func covers(dir, p string) bool { return dir == p || dir == "/" || strings.HasPrefix(p, dir+"/") }

func unfit(format string, args ...any) *job.Error {
	return job.Errorf(job.CodeImage, "image", format, args...).WithHint("rebuild the image without it, or name another image")
}

func bindMounts(f Facts) []engine.Bind {
	out := []engine.Bind{
		{Source: f.InitFile, Target: PathInit},
		{Source: f.SbxFile, Target: PathSbx},
		{Source: f.SlotDir, Target: PathSlot},
	}
	for _, b := range f.Binds {
		out = append(out, engine.Bind{Source: b.Source, Target: b.Target})
	}
	for i := range out {
		out[i].ReadOnly, out[i].Propagation = true, "private"
	}
	return out
}
