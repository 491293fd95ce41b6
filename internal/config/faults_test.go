package config_test

import (
	"strings"
	"testing"

	"sandboxd/internal/config"
)

// fault is a file that must be refused, in words that hold all of these.
type fault struct {
	name, text string
	want       []string
}

func refuse(t *testing.T, faults []fault) {
	t.Helper()
	for _, c := range faults {
		t.Run(c.name, func(t *testing.T) {
			cfg := config.Default(usual)
			err := config.Parse(c.text, &cfg)
			if err == nil {
				t.Fatal("passes")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nlacks %q", err, want)
				}
			}
		})
	}
}

func TestWrongKeysAreNamedWithTheRightOne(t *testing.T) {
	refuse(t, []fault{
		{"unknown section", "[sokcet]\npath = \"/x\"", []string{"sokcet: unknown key; did you mean socket?", "sokcet.path: unknown key; did you mean socket.path?"}},
		{"misspelt key", "[limits]\nmemroy = \"1GiB\"", []string{"limits.memroy: unknown key; did you mean limits.memory?"}},
		{"singular section", "[limit]\nmemory = \"1GiB\"", []string{"limit.memory: unknown key; did you mean limits.memory?"}},
		{"key without its section", "max_running = 3", []string{"max_running: unknown key; did you mean capacity.max_running?"}},
		{"key of another section", "[jobs]\nmax_queued = 3", []string{"jobs.max_queued: unknown key; did you mean capacity.max_queued?"}},
		{"a word of its own", "[capacity]\nfrobnicate = 3", []string{"capacity.frobnicate: unknown key; see config.toml.example"}},
		{"a word without end", "[capacity]\n" + strings.Repeat("x", 500_000) + " = 3", []string{"capacity.xxxxxx", "see config.toml.example"}},
		{"case twin", "[limits]\nmemory = \"1GiB\"\nMemory = \"9GiB\"", []string{"limits.Memory: unknown key; did you mean limits.memory?"}},
		{"case twin of a section", "[limits]\nmemory = \"1GiB\"\n[Limits]\nmemory = \"9GiB\"", []string{"Limits.memory: unknown key; did you mean limits.memory?"}},
		{"upper case alone", "[LIMITS]\nMEMORY = \"1GiB\"", []string{"LIMITS.MEMORY: unknown key; did you mean limits.memory?"}},
		{"quoted dots", "\"limits.memory\" = \"64MiB\"", []string{"\"limits.memory\": unknown key"}},
		{"quoted dots in a section", "[\"limits.memory\"]\nx = 1", []string{"\"limits.memory\": unknown key", "\"limits.memory\".x: unknown key"}},
		{"duplicate key", "[limits]\nmemory = \"1GiB\"\nmemory = \"9GiB\"", []string{"line 3", "memory"}},
		{"duplicate section", "[limits]\npids = 1\n[limits]\nmemory = \"9GiB\"", []string{"line 3", "limits"}},
		{"below a value", "[limits.memory]\nx = 1", []string{"limits.memory.x: unknown key"}},
		{"not in limits", "[limits]\nhome_exec = false", []string{"limits.home_exec: unknown key; did you mean defaults.home_exec?"}},
		{"two at once", "[limits]\npids = 0\n[jobs]\nkeep_per_user = 0", []string{"limits.pids", "jobs.keep_per_user"}},
		{"an unknown one beside a wrong type", "[limits]\npids = \"x\"\nmemroy = 1", []string{"limits.memroy", "limits.pids"}},
	})
}

func TestWrongTypesAreNamed(t *testing.T) {
	refuse(t, []fault{
		{"text for a number", "[limits]\npids = \"512\"", []string{"limits.pids", "string", "integer"}},
		{"fraction for a number", "[limits]\npids = 1.5", []string{"limits.pids", "float", "integer"}},
		{"number for text", "[socket]\npath = 5", []string{"socket.path", "int64", "string"}},
		{"value for a section", "limits = 5", []string{"limits"}},
		{"text for a list", "[images]\nallow = \"a\"", []string{"images.allow", "string", "slice"}},
		{"text for yes or no", "[log]\njson = \"true\"", []string{"log.json", "boolean"}},
		{"too large for 64 bits", "[limits]\npids = 9223372036854775808", []string{"9223372036854775808"}},
		{"no TOML", "hello", []string{"line 1"}},
		{"JSON", `{"limits": {"pids": 1}}`, []string{"line 1"}},
	})
}

func TestZeroAndLessAreNamed(t *testing.T) {
	refuse(t, []fault{
		{"zero count", "[capacity]\nmax_running = 0", []string{"capacity.max_running: 0 is out of range; write at least 1 (0 never means unlimited)"}},
		{"negative count", "[capacity]\nmax_queued = -1", []string{"capacity.max_queued: -1 is out of range"}},
		{"zero per user", "[capacity]\nmax_running_per_user = 0\nmax_queued_per_user = -5", []string{"capacity.max_running_per_user: 0 is", "capacity.max_queued_per_user: -5 is"}},
		{"zero connections", "[socket]\nmax_connections = 0\nmax_connections_per_user = 0", []string{"socket.max_connections: 0", "socket.max_connections_per_user: 0"}},
		{"zero memory", "[capacity]\nmemory = 0", []string{"capacity.memory: 0B is out of range; write at least 88MiB"}},
		{"zero cores", "[capacity]\ncpus = 0", []string{"capacity.cpus: 0 is out of range; write at least 0.01"}},
		{"zero disk", "[capacity]\nmin_free_disk = \"0\"", []string{"capacity.min_free_disk: 0B is out of range; write at least 1B"}},
		{"zero times", "[jobs]\nlease_grace = 0\ncancel_grace = \"0s\"\nretention = \"999ms\"", []string{"jobs.lease_grace: 0s is out of range; write at least 1ms", "jobs.cancel_grace: 0s", "jobs.retention: 999ms is out of range; write at least 1s"}},
		{"short call", "[engine]\ncall_timeout = \"10ms\"", []string{"engine.call_timeout: 10ms is out of range; write at least 1s"}},
		{"zero default", "[defaults]\nmemory = 0\ncpus = 0\ntimeout = 0", []string{"defaults.memory: 0B is too small; write at least 64MiB", "defaults.cpus: 0 is", "defaults.timeout: 0s is"}},
		{"zero limit", "[limits]\nmemory = 0\npids = 0\nnofile = -1\noutput_keep = 0", []string{"limits.memory: 0B is too small", "limits.pids: 0 is", "limits.nofile: -1 is", "limits.output_keep"}},
		{"less than a millisecond", "[limits]\ntimeout = \"500us\"", []string{"limits.timeout: 0s is too small; write at least 1s"}},
	})
}

func TestBrokenQuantitiesAreNamed(t *testing.T) {
	refuse(t, []fault{
		{"size without a number", "[limits]\nmemory = \"MiB\"", []string{"limits.memory", `"MiB" is not a size`, "512MiB"}},
		{"fractional size", "[limits]\nmemory = 1.5", []string{"limits.memory", "is not a size"}},
		{"fractional size in text", "[limits]\nmemory = \"1.5GiB\"", []string{"limits.memory", "is not a size"}},
		{"negative size", "[limits]\nmemory = -1", []string{"limits.memory", `"-1" is not a size`}},
		{"negative size that wraps", "[limits]\nmemory = \"-9007199254740993KiB\"", []string{"limits.memory", "is not a size"}},
		{"size that wraps", "[limits]\nmemory = \"18014398509481984KiB\"", []string{"limits.memory", "more than any size"}},
		{"size of no host", "[limits]\nmemory = \"1025TiB\"", []string{"limits.memory", "more than any size"}},
		{"unlimited", "[limits]\nmemory = \"unlimited\"", []string{"limits.memory", "is not a size"}},
		{"yes for a size", "[limits]\nmemory = true", []string{"limits.memory", "is not a size"}},
		{"cores in letters", "[limits]\ncpus = \"two\"", []string{"limits.cpus", `"two" is not a number of cores`}},
		{"negative cores", "[limits]\ncpus = -1", []string{"limits.cpus", "is not a number of cores"}},
		{"thin cores", "[limits]\ncpus = 0.0001", []string{"limits.cpus", "three decimals"}},
		{"no end of cores", "[limits]\ncpus = inf", []string{"limits.cpus", "is not a number of cores"}},
		{"no number of cores", "[limits]\ncpus = nan", []string{"limits.cpus", "is not a number of cores"}},
		{"cores with an exponent", "[limits]\ncpus = \"1e3\"", []string{"limits.cpus", "is not a number of cores"}},
		{"negative span", "[limits]\ntimeout = \"-5s\"", []string{"limits.timeout", "is not a span of time"}},
		{"span of days", "[jobs]\nretention = \"7d\"", []string{"jobs.retention", "is not a span of time", "1h30m"}},
		{"span beyond all time", "[jobs]\nretention = \"9999999999h\"", []string{"jobs.retention", "is not a span of time"}},
	})
}

func TestBrokenValuesAreNamed(t *testing.T) {
	refuse(t, []fault{
		{"relative socket", "[socket]\npath = \"run/x.sock\"", []string{"socket.path", "not a clean absolute path"}},
		{"empty socket", "[socket]\npath = \"\"", []string{"socket.path", "not a clean absolute path"}},
		{"dots in a socket", "[socket]\npath = \"/run/../x\"", []string{"socket.path", "not a clean absolute path"}},
		{"newline in a socket", "[socket]\npath = \"/run/\\n\"", []string{"socket.path", "not a clean absolute path"}},
		{"long socket", "[socket]\npath = \"/" + strings.Repeat("x", 107) + "\"", []string{"socket.path: 108 bytes are more than a unix socket's path may have (107)"}},
		{"relative state", "[state]\ndir = \"x\"\nrun_dir = \"/x/\"", []string{"state.dir", "state.run_dir"}},
		{"state on the root", "[state]\ndir = \"/\"", []string{"state.dir: the whole host cannot be the daemon's own folder"}},
		{"relative root", "[workspace]\nroots = [\"/srv\", \"home\"]", []string{"workspace.roots", `"home" is not a clean absolute path`}},
		{"no roots", "[workspace]\nroots = []", []string{"workspace.roots: empty", "leave the key out"}},
		{"unknown runtime", "[engine]\nruntime = \"kata\"", []string{`engine.runtime: "kata" is not one of runc`}},
		{"a runtime without a gate", "[engine]\nruntime = \"runsc\"", []string{"engine.runtime", "no job could pass the gate", `use "runc"`}},
		{"unknown pull", "[images]\npull = \"\"", []string{`images.pull: "" is not one of never, missing, always`}},
		{"unknown level", "[log]\nlevel = \"INFO\"", []string{`log.level: "INFO" is not one of`}},
		{"no images", "[images]\nallow = []", []string{"images.allow: empty: no job could run"}},
		{"empty image", "[images]\nallow = [\"\"]\ndefault = \"\"", []string{`images.allow: "" is not an image's name`}},
		{"image with a newline", "[images]\nallow = [\"sandboxd/base\", \"a\\nb\"]", []string{`images.allow: "a\nb" is not an image's name`}},
		{"default not allowed", "[images]\ndefault = \"x\"", []string{`images.default: "x" is not in images.allow (sandboxd/base, sandboxd/tiny)`}},

		{"low uids", "[slots]\nuid_first = 1000", []string{"slots.uid_first: 1000 is out of range; write at least 100000"}},
		{"negative uids", "[slots]\nuid_first = -5", []string{"slots.uid_first: -5 is out of range"}},
		{"uids that wrap", "[slots]\nuid_first = 4294967296", []string{"slots.uid_first: 4294967296 is out of range"}},
		{"uids beyond the last", "[slots]\nuid_first = 4294930000", []string{"slots.uid_count", "beyond the last there is"}},
		{"zero uids", "[slots]\nuid_count = 0", []string{"slots.uid_count: 0 is out of range"}},
		{"narrow stride", "[slots]\nuid_stride = 7", []string{"slots.uid_stride: 7 is out of range; write at least 8"}},
		{"few uids", "[slots]\nuid_count = 64", []string{"slots.uid_count: 64 uids are room for 8 containers", "max_running = 8"}},
		{"more jobs than uids", "[capacity]\nmax_running = 9223372036854775807", []string{"slots.uid_count", "max_running = 9223372036854775807"}},

		{"default above its limit", "[defaults]\nmemory = \"2GiB\"\n[limits]\nmemory = \"1GiB\"", []string{"defaults.memory: 2GiB is more than [limits] allows (at most 1GiB)"}},
		{"default above the built-in limit", "[defaults]\ntimeout = \"100h\"", []string{"defaults.timeout: 100h0m0s is more than [limits] allows (at most 6h0m0s)"}},
		{"default above capacity", "[defaults]\ncpus = 2\nmemory = \"1GiB\"\n[limits]\ncpus = 4\nmemory = \"8GiB\"\n[capacity]\ncpus = 1\nmemory = \"1GiB\"", []string{
			"defaults.cpus: 2 is more than [capacity] leaves one job (at most 1)", "defaults.memory: 1GiB is more than [capacity] leaves one job (at most 1000MiB)"}},
		{"a profile's misspelt key", "[profiles.x]\ndelegats = []", []string{"profiles.x.delegats: unknown key; did you mean profiles.x.delegates?"}},
		{"a profile's misspelt section", "[profiles.x.limit]\nmemory = 1", []string{"profiles.x.limit.memory: unknown key; did you mean profiles.x.limits.memory?"}},
		{"a profile's case twin", "[profiles.x]\ntrust = \"untrusted\"\nTrust = \"trusted\"", []string{"profiles.x.Trust: unknown key; did you mean profiles.x.trust?"}},
		{"case twins of profiles", "[Profiles.x]\ntrust = \"trusted\"", []string{"Profiles.x.trust: unknown key"}},
		{"a profile in capitals", "[profiles.X]\n", []string{`profiles.X: "X" is not a profile's name`}},
		{"a profile of the placeholder's name", "[profiles.NAME]\n", []string{`"NAME" is not a profile's name`}},
		{"a profile with a dot in its name", "[profiles.\"a b\"]\n", []string{`"a b" is not a profile's name`}},
		{"a profile twice", "[profiles.x]\n[profiles.x]\n", []string{"line 2", "profiles.x"}},
		{"a profile that is none", "[profiles]\nx = 5", []string{"profiles.x"}},
		{"a network that is not there yet", "[profiles.x]\negress = \"all\"", []string{"profiles.x.egress: unknown key"}},
		{"unknown trust", "[profiles.x]\ntrust = \"Trusted\"", []string{`profiles.x.trust: "Trusted" is not one of trusted, untrusted`}},
		{"trust with a space", "[profiles.x]\ntrust = \" trusted\"", []string{`profiles.x.trust: " trusted" is not one of`}},
		{"unknown risk", "[profiles.x]\nmax_risk = \"high\"", []string{`profiles.x.max_risk: "high" is not one of safe, local_write`}},
		{"unknown inheritance", "[profiles.x]\nbudget_inherit = \"none\"", []string{`profiles.x.budget_inherit: "none" is not one of share, operator`}},
		{"zero counts of a tree", "[profiles.x]\nmax_depth = 0\nmax_tree_jobs = 0\nmax_tree_live = -1", []string{"profiles.x.max_depth: 0 is out of range; write 1 to 16 (0 never means unlimited)",
			"profiles.x.max_tree_jobs: 0 is out of range; write 1 to 10000", "profiles.x.max_tree_live: -1 is out of range; write 1 to 1000"}},
		{"counts above [limits]", "[limits]\nmax_depth = 3\nmax_tree_jobs = 7\nmax_tree_live = 4\n[profiles.x]\nmax_depth = 4\nmax_tree_jobs = 8\nmax_tree_live = 5", []string{
			"profiles.x.max_depth: 4 is out of range; write 1 to 3", "profiles.x.max_tree_jobs: 8", "profiles.x.max_tree_live: 5"}},
		{"counts of [limits]", "[limits]\nmax_depth = 17\nmax_tree_jobs = 0\nmax_tree_live = 1001", []string{"limits.max_depth: 17 is out of range; write 1 to 16", "limits.max_tree_jobs: 0", "limits.max_tree_live: 1001"}},
		{"retention beyond the daemon's", "[profiles.x]\nretention = \"25h\"", []string{"profiles.x.retention: 25h0m0s is out of range; write 1ms to 24h0m0s"}},
		{"zero budgets", "[profiles.x.budget]\ncpu = 0\ntool_calls = 0\noutput_bytes = 0\nwall = \"1ms\"", []string{"profiles.x.budget.cpu: 0s is too small; write at least 1ms", "profiles.x.budget.tool_calls: 0 is",
			"profiles.x.budget.output_bytes: 0B is", "profiles.x.budget.wall: 1ms is less than a job can have (1s)"}},
		{"odd budgets", "[profiles.x.budget]\ntool_calls = 1.5\n", []string{"profiles.x.budget.tool_calls"}},
		{"zero budget of [limits]", "[limits.budget]\ncpu = 0\nwall = 0", []string{"limits.budget.cpu: 0s is too small", "limits.budget.wall: 0s is too small"}},
		{"a budget above [limits]", "[limits.budget]\ncpu = \"1m\"\n[profiles.x.budget]\ncpu = \"2m\"", []string{"profiles.x.budget.cpu: 2m0s is more than [limits] allows (at most 1m0s)"}},
		{"a profile's limit above [limits]", "[limits]\nmemory = \"2GiB\"\n[profiles.x.limits]\nmemory = \"3GiB\"", []string{"profiles.x.limits.memory: 3GiB is more than [limits] allows (at most 2GiB)"}},
		{"a profile's default above its limit", "[profiles.x.defaults]\npids = 9\n[profiles.x.limits]\npids = 8", []string{"profiles.x.defaults.pids: 9 is more than its limit allows (at most 8)"}},
		{"a profile's default above capacity", "[capacity]\nmemory = \"1GiB\"\n[limits]\nmemory = \"4GiB\"\n[profiles.x.defaults]\nmemory = \"2GiB\"", []string{"profiles.x.defaults.memory: 2GiB is more than [capacity] leaves one job (at most 1000MiB)"}},
		{"zero in a profile", "[profiles.x.defaults]\nmemory = 0\n[profiles.x.limits]\nnofile = 0", []string{"profiles.x.defaults.memory: 0B is too small", "profiles.x.limits.nofile: 0 is too small"}},
		{"an image nobody allows", "[profiles.x]\nimages = [\"debian\"]", []string{`profiles.x.images: "debian" is not in images.allow (sandboxd/base, sandboxd/tiny)`}},
		{"no images", "[profiles.x]\nimages = []", []string{"profiles.x.images: empty: no job could run"}},
		{"an image of another profile", "[profiles.x]\nimage = \"sandboxd/base\"\nimages = [\"sandboxd/tiny\"]", []string{`profiles.x.image: "sandboxd/base" is not among the images of this profile (sandboxd/tiny)`}},
		{"rw without trust", "[profiles.x.workspace]\nmax_mode = \"rw\"", []string{`profiles.x.workspace.max_mode: "rw" goes with overlay at most (trust is not trusted)`}},
		{"overlay without risk", "[profiles.x]\ntrust = \"trusted\"\nmax_risk = \"safe\"\n[profiles.x.workspace]\nmax_mode = \"overlay\"", []string{`profiles.x.workspace.max_mode: "overlay" goes with ro at most (max_risk is below local_write)`}},
		{"a mode above the most", "[profiles.x.workspace]\nmode = \"overlay\"\nmax_mode = \"ro\"", []string{`profiles.x.workspace.mode: "overlay" is more than workspace.max_mode (ro)`}},
		{"unknown modes", "[profiles.x.workspace]\nmode = \"RO\"\nmax_mode = \"write\"\ngit = \"no\"", []string{`profiles.x.workspace.mode: "RO" is not one of ro, overlay, rw`, `profiles.x.workspace.max_mode: "write" is not`, `profiles.x.workspace.git: "no" is not`}},
		{"git without rw", "[profiles.x.workspace]\ngit = \"rw\"", []string{"profiles.x.workspace.git: only in a rw workspace may .git be written"}},
		{"live without trust", "[profiles.x.workspace]\nlive = true", []string{"profiles.x.workspace.live: an untrusted job gets no live workspace"}},
		{"odd variables", "[profiles.x]\nenv_inherit = [\"A=B\", \"SANDBOXD_JOB\", \"*\", \"\"]", []string{`profiles.x.env_inherit: "A=B" is not the name of a variable`, `"SANDBOXD_JOB" is not`, `"*" is no name here`, `"" is not a name`}},
		{"odd tools", "[profiles.x.tools]\nallow = [\"a\", \"a\"]\ndeny = [\" b\"]", []string{`profiles.x.tools.allow: "a" is named twice`, `profiles.x.tools.deny: " b" is not a name`}},
		{"two profiles at once", "[profiles.x]\ntrust = \"x\"\n[profiles.y]\ntrust = \"y\"", []string{"profiles.x.trust", "profiles.y.trust"}},
		{"pids of no kernel", "[limits]\npids = 4194305", []string{"limits.pids: 4194305 is more than a kernel has"}},
		{"files of no kernel", "[limits]\nnofile = 1048577", []string{"limits.nofile: 1048577 is more than a kernel allows"}},
	})
}

// A fault is told once, for the key that caused it.
func TestAFaultIsToldOnce(t *testing.T) {
	for _, text := range []string{
		"[capacity]\nmemory = 0", "[capacity]\ncpus = 0", "[limits]\nmemory = 0", "[limits]\npids = 0", "[limits]\nhome_bytes = 0",
		"[limits]\ntimeout = 0", "[limits]\nmemroy = 1", "[slots]\nuid_first = -1", "[capacity]\nmax_running = 0", "[images]\npull = \"x\"",
		"[limits]\nmax_depth = 0", "[limits.budget]\ncpu = 0", "[profiles.x]\ntrust = \"x\"", "[profiles.x.limits]\npids = 0", "[profiles.x.defaults]\npids = 0", "[defaults]\npids = 0",
		"[profiles.x.limits]\nmemory = \"1PiB\"", "[profiles.X]\n", "[profiles.x.workspace]\nmode = \"rw\"", "[profiles.x.defaults]\nmemory = \"1000GiB\"",
	} {
		c := config.Default(usual)
		if err := config.Parse(text, &c); err == nil || strings.Count(err.Error(), "\n") != 0 {
			t.Errorf("%q: %v", text, err)
		}
	}
}
