package sandbox

// maskedPaths are hidden: a file becomes /dev/null, a directory an empty read-only tmpfs. Runtimes pass over those a
// kernel does not have. The first group is moby's newest list.
var maskedPaths = []string{
	"/proc/asound",
	"/proc/acpi",
	"/proc/interrupts",
	"/proc/kcore",
	"/proc/keys",
	"/proc/latency_stats",
	"/proc/timer_list",
	"/proc/timer_stats",
	"/proc/sched_debug",
	"/proc/scsi",
	"/sys/firmware",
	"/sys/devices/virtual/powercap",

	"/proc/cmdline",   // the host's boot line, which may hold more than names
	"/proc/key-users", // uids of the host and how many keys they hold
	"/proc/kallsyms",
	"/proc/kmsg",
	"/proc/kpagecgroup",
	"/proc/kpagecount",
	"/proc/kpageflags",
	"/proc/schedstat",
	"/proc/slabinfo",
	"/proc/softirqs", // as interrupts: keystrokes and packets of others can be timed by it
	"/proc/vmallocinfo",
	"/sys/devices/virtual/dmi", // serial numbers
	"/sys/class/dmi",
	"/sys/class/powercap",
	"/sys/fs/bpf",
	"/sys/fs/pstore",
	"/sys/kernel/debug",
	"/sys/kernel/notes", // addresses of the kernel, on some versions
	"/sys/kernel/security",
	"/sys/kernel/slab",
	"/sys/kernel/tracing",
	"/sys/kernel/vmcoreinfo",
}

// readonlyPaths are moby's.
var readonlyPaths = []string{
	"/proc/bus",
	"/proc/fs",
	"/proc/irq",
	"/proc/sys",
	"/proc/sysrq-trigger",
}
