package job

import "strconv"

// Caller is who asks, named by the socket the request came on and nothing in the request.
type Caller struct {
	// Principal is "uid:N" for a host user and "job:ID" for a job.
	Principal string
	UID, GID  uint32
	Groups    []uint32 // supplementary groups of the peer, by the kernel
	PID       int32    // of the peer at connect time; for logs only, a pid proves nothing later
	Job       ID       // set when the caller is a job
	Admin     bool     // uid 0 or the configured admin group: sees every tree
}

// JobCaller makes the caller of a job: it acts for the owner of its tree, and is never an admin.
func JobCaller(j Job) Caller {
	return Caller{Principal: "job:" + string(j.ID), UID: j.OwnerUID, GID: j.OwnerGID, Groups: j.Groups, Job: j.ID}
}

// HostCaller makes the caller of a host user.
func HostCaller(uid, gid uint32, groups []uint32, pid int32, admin bool) Caller {
	return Caller{Principal: "uid:" + strconv.FormatUint(uint64(uid), 10), UID: uid, GID: gid, Groups: groups, PID: pid, Admin: admin}
}
