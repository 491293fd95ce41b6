package config

// file is the shape of the TOML file. Pointers tell absent from zero. The tags are the only names a file may use, to
// the letter.
type file struct {
	Socket    fileSocket    `toml:"socket"`
	State     fileState     `toml:"state"`
	Engine    fileEngine    `toml:"engine"`
	Images    fileImages    `toml:"images"`
	Capacity  fileCapacity  `toml:"capacity"`
	Slots     fileSlots     `toml:"slots"`
	Jobs      fileJobs      `toml:"jobs"`
	Workspace fileWorkspace `toml:"workspace"`
	Defaults  fileDefaults  `toml:"defaults"`
	Limits    fileLimits    `toml:"limits"`
	Log       fileLog       `toml:"log"`

	Profiles map[string]fileProfile `toml:"profiles"`
}

type fileSocket struct {
	Path         *string `toml:"path"`
	Group        *string `toml:"group"`
	AdminGroup   *string `toml:"admin_group"`
	MaxConns     *int64  `toml:"max_connections"`
	MaxConnsUser *int64  `toml:"max_connections_per_user"`
}

type fileState struct {
	Dir    *string `toml:"dir"`
	RunDir *string `toml:"run_dir"`
}

type fileEngine struct {
	Host        *string `toml:"host"`
	Runtime     *string `toml:"runtime"`
	CallTimeout *span   `toml:"call_timeout"`
	WarmSlots   *int64  `toml:"warm_slots"`
	WarmFor     *span   `toml:"warm_for"`
}

type fileImages struct {
	Default *string   `toml:"default"`
	Allow   *[]string `toml:"allow"`
	Pull    *string   `toml:"pull"`
}

type fileCapacity struct {
	MaxRunning        *int64 `toml:"max_running"`
	MaxRunningPerUser *int64 `toml:"max_running_per_user"`
	MaxQueued         *int64 `toml:"max_queued"`
	MaxQueuedPerUser  *int64 `toml:"max_queued_per_user"`
	CPUs              *cores `toml:"cpus"`
	Memory            *size  `toml:"memory"`
	MinFreeDisk       *size  `toml:"min_free_disk"`
}

type fileSlots struct {
	UIDFirst  *int64 `toml:"uid_first"`
	UIDCount  *int64 `toml:"uid_count"`
	UIDStride *int64 `toml:"uid_stride"`
}

type fileJobs struct {
	LeaseGrace  *span  `toml:"lease_grace"`
	CancelGrace *span  `toml:"cancel_grace"`
	Retention   *span  `toml:"retention"`
	KeepPerUser *int64 `toml:"keep_per_user"`
}

type fileWorkspace struct {
	Roots *[]string `toml:"roots"`
}

type fileLog struct {
	Level *string `toml:"level"`
	JSON  *bool   `toml:"json"`
}

// fileDefaults is what a job gets where it asks nothing.
type fileDefaults struct {
	fileAmounts
	HomeExec *bool `toml:"home_exec"`
}

// fileAmounts serves the defaults and limits, of all profiles and of one.
type fileAmounts struct {
	fileSizes
	Timeout *span `toml:"timeout"`
}

// fileSizes are the amounts but for the timeout, which a project file has elsewhere.
type fileSizes struct {
	CPUs       *cores `toml:"cpus"`
	Memory     *size  `toml:"memory"`
	Pids       *int64 `toml:"pids"`
	Nofile     *int64 `toml:"nofile"`
	TmpBytes   *size  `toml:"tmp_bytes"`
	HomeBytes  *size  `toml:"home_bytes"`
	OutBytes   *size  `toml:"out_bytes"`
	OutputKeep *size  `toml:"output_keep"`
}
