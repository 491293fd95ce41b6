// Package sandbox is the wall around a job: it turns a frozen posture into a hardened container, proves that the live
// container is what was asked for before any code of the user runs, bounds and measures it, kills it, and removes all
// that it left.
//
// A life of a slot:
//
//	Fill      intent → uid, directory, socket → create → inspect → start → init connects → gate → cgroups → ready
//	HandOver  evidence read again, the job's limits written and read back, cores chosen; no engine call
//	…         Readings, Freeze, Thaw, KillJob by the `job` cgroup
//	Remove    container, cgroups, directory, and only then the uid; may be called again until it succeeds
//
// Render is pure and writes every setting of the container; the gate (gate_*.go) holds what is expected of a live one.
// Anything that differs is a GateError, and the container is destroyed.
//
// Nothing that lacks both our label and a SlotRecord is ever touched.
package sandbox
