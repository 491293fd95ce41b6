package job

// Spec is one request as admitted: everything resolved, nothing left to default. It is stored with the job and
// never changes.
type Spec struct {
	Command   []string          `json:"command"`
	Image     string            `json:"image"`    // as asked, for people
	ImageID   string            `json:"image_id"` // what runs: sha256:… of the image's configuration
	Profile   string            `json:"profile"`
	Role      string            `json:"role,omitempty"`
	Skills    []string          `json:"skills,omitempty"`
	Task      *Task             `json:"task,omitempty"`
	Env       []EnvVar          `json:"env,omitempty"`
	Stdin     StdinMode         `json:"stdin,omitempty"`
	StdinData []byte            `json:"stdin_data,omitempty"`
	Workdir   string            `json:"workdir"`
	Workspace *Workspace        `json:"workspace,omitempty"`
	Mounts    []Mount           `json:"mounts,omitempty"`
	Result    string            `json:"result"` // exit | agent
	Labels    map[string]string `json:"labels,omitempty"`
	Name      string            `json:"name,omitempty"`
	Priority  int               `json:"priority,omitempty"`
	Lease     bool              `json:"lease,omitempty"`
	Session   string            `json:"parent_session,omitempty"`
	Agent     *AgentTerms       `json:"agent,omitempty"` // nil on records from before there were any
}

// AgentTerms are what binds the agent of a job and what only it can keep, with the effective values. They are handed to it.
type AgentTerms struct {
	Trust      string   `json:"trust"`
	MaxRisk    string   `json:"max_risk"`
	ToolsAllow []string `json:"tools_allow"` // "*" is all
	ToolsDeny  []string `json:"tools_deny"`
	Mode       string   `json:"mode"`
	Model      string   `json:"model,omitempty"` // as asked
}

// Task is the parent's words, at most 1 MiB in all.
type Task struct {
	Goal     string `json:"goal"`
	Context  string `json:"context,omitempty"`
	Guidance string `json:"guidance,omitempty"`
}

// EnvVar is one environment variable, in the order given.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// StdinMode says where the command's standard input comes from.
type StdinMode string

// The modes: /dev/null, the bytes of the request, or a stream the client sends afterwards.
const (
	StdinNone   StdinMode = ""
	StdinBytes  StdinMode = "bytes"
	StdinStream StdinMode = "stream"
)

// WorkspaceMode orders how a workspace is given: ro ⊑ overlay ⊑ rw.
type WorkspaceMode string

// The modes.
const (
	WorkspaceRO      WorkspaceMode = "ro"
	WorkspaceOverlay WorkspaceMode = "overlay"
	WorkspaceRW      WorkspaceMode = "rw"
)

// Workspace is the host tree seen at /workspace.
type Workspace struct {
	Path string        `json:"path"` // absolute, as resolved at admission
	Mode WorkspaceMode `json:"mode"`
}

// Mount is an extra read-only input seen at /mnt/<Name>.
type Mount struct {
	Source string `json:"source"`
	Name   string `json:"name"`
}

// Delegation is provenance: inert words that appear in the record, the result and every failure.
type Delegation struct {
	Role   string   `json:"role,omitempty"`
	Skills []string `json:"skills,omitempty"`
	Source string   `json:"source,omitempty"` // caller principal that set them
}
