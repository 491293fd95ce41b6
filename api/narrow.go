package api

// ProjectFile is what a workspace may hold in its root to narrow the jobs that run on it.
const ProjectFile = ".sandboxd.toml"

// Tools narrow what an agent may call: the allowed of parent and job together, without what either denies. A list
// left out inherits; an empty Allow allows nothing.
type Tools struct {
	Allow []string `json:"allow,omitzero" toml:"allow"`
	Deny  []string `json:"deny,omitzero" toml:"deny"`
}

// Budget asks for amounts that the job and all its descendants may spend. A pointer left nil takes a share of what is
// left; 0 and negative amounts are invalid. Amounts beyond what is left are cut to it, or refused where Strict is set.
type Budget struct {
	Wall          *Duration `json:"wall,omitempty" toml:"wall"`
	CPU           *Duration `json:"cpu,omitempty" toml:"cpu"`
	EgressBytes   *Size     `json:"egress_bytes,omitempty" toml:"egress_bytes"`
	OutputBytes   *Size     `json:"output_bytes,omitempty" toml:"output_bytes"`
	ArtifactBytes *Size     `json:"artifact_bytes,omitempty" toml:"artifact_bytes"`
	InputTokens   *Int      `json:"input_tokens,omitempty" toml:"input_tokens"`
	OutputTokens  *Int      `json:"output_tokens,omitempty" toml:"output_tokens"`
	ToolCalls     *Int      `json:"tool_calls,omitempty" toml:"tool_calls"`
	CostMicroUSD  *Int      `json:"cost_micro_usd,omitempty" toml:"cost_micro_usd"`
	Strict        bool      `json:"strict,omitempty" toml:"strict"`
	Inherit       string    `json:"inherit,omitempty" toml:"inherit"` // the operator's to set; refused in a request
}

// Egress asks for a network policy. A job that leaves it out inherits.
type Egress struct {
	Mode string `json:"mode" toml:"mode"` // none
}

// ProjectLimits is the content of a workspace's ProjectFile. It can only narrow what the profile and the request allow.
type ProjectLimits struct {
	Limits  *Limits   `json:"limits,omitempty" toml:"limits"`
	Timeout *Duration `json:"timeout,omitempty" toml:"timeout"`
	Budget  *Budget   `json:"budget,omitempty" toml:"budget"`
	Trust   string    `json:"trust,omitempty" toml:"trust"`
	MaxRisk string    `json:"max_risk,omitempty" toml:"max_risk"`
	Tools   *Tools    `json:"tools,omitempty" toml:"tools"`
}
