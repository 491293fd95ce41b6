// Package supervise is what sbx-init does as PID 1 of a job container: it forks the stub that becomes the command,
// reaps, pipes, keeps the deadline, and relays to the daemon over the frames of internal/wire.
//
// The parts and who owns them:
//
//	                 orders                       frames
//	daemon ── link (one connection at a time) ◄── sender ◄── ring (kept until acked, 4 MiB)
//	              │                                           ▲        ▲
//	              ▼                                    started, exited │ output
//	       supervisor (one loop, all decisions) ──────────────┘        │
//	        │      ▲         ▲                                         │
//	     plan   alarm     reaper (wait4 of anybody)                outputs (poll)
//	 (pure: when         status of the main process                    ▲
//	  to TERM, KILL)                                                   │ pipes
//	        └── signals ──────────► command ───────────────────────────┘
//
// Decisions about time are the plan's, which does no I/O. Nothing here trusts the command; the daemon is trusted with the
// job but not with init's life: whatever it sends, init drops the connection at worst and goes on.
package supervise
