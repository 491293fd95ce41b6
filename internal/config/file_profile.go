package config

import (
	"sandboxd/internal/budget"
)

// fileProfile is [profiles.NAME]. What it leaves out is what [defaults] and [limits] say, and for the rest the built-in
// default, which is narrow.
type fileProfile struct {
	Description *string      `toml:"description"`
	Defaults    fileDefaults `toml:"defaults"`
	Limits      fileAmounts  `toml:"limits"`

	Image     *string           `toml:"image"`
	Images    *[]string         `toml:"images"`
	Workspace fileWorkspaceRule `toml:"workspace"`

	Delegates   *[]string `toml:"delegates"`
	MaxDepth    *int64    `toml:"max_depth"`
	MaxTreeJobs *int64    `toml:"max_tree_jobs"`
	MaxTreeLive *int64    `toml:"max_tree_live"`

	Budget        fileBudget `toml:"budget"`
	BudgetInherit *string    `toml:"budget_inherit"`

	Lease      *bool     `toml:"lease"`
	Retention  *span     `toml:"retention"`
	EnvInherit *[]string `toml:"env_inherit"`

	Trust   *string   `toml:"trust"`
	MaxRisk *string   `toml:"max_risk"`
	Tools   fileTools `toml:"tools"`
}

// fileWorkspaceRule says how a workspace may be given.
type fileWorkspaceRule struct {
	Mode    *string `toml:"mode"`
	MaxMode *string `toml:"max_mode"`
	Git     *string `toml:"git"`
	Live    *bool   `toml:"live"`
}

type fileTools struct {
	Allow *[]string `toml:"allow"`
	Deny  *[]string `toml:"deny"`
}

// fileLimits is [limits]: the most that any profile may give.
type fileLimits struct {
	fileAmounts
	MaxDepth    *int64     `toml:"max_depth"`
	MaxTreeJobs *int64     `toml:"max_tree_jobs"`
	MaxTreeLive *int64     `toml:"max_tree_live"`
	Budget      fileBudget `toml:"budget"`
}

// fileBudget has the dimensions as requests write them.
type fileBudget struct {
	Wall          *span  `toml:"wall"`
	CPU           *span  `toml:"cpu"`
	EgressBytes   *size  `toml:"egress_bytes"`
	OutputBytes   *size  `toml:"output_bytes"`
	ArtifactBytes *size  `toml:"artifact_bytes"`
	InputTokens   *int64 `toml:"input_tokens"`
	OutputTokens  *int64 `toml:"output_tokens"`
	ToolCalls     *int64 `toml:"tool_calls"`
	CostMicroUSD  *int64 `toml:"cost_micro_usd"`
}

// limits returns what the section names, spans rounded down to milliseconds. The result is never nil.
func (f fileBudget) limits() budget.Limits {
	out := budget.Limits{}
	ms := func(s *span) *int64 {
		if s == nil {
			return nil
		}
		return new(int64(*s) / 1e6)
	}
	for d, v := range map[budget.Dim]*int64{
		budget.WallMS: ms(f.Wall), budget.CPUMS: ms(f.CPU), budget.EgressBytes: (*int64)(f.EgressBytes), budget.OutputBytes: (*int64)(f.OutputBytes),
		budget.ArtifactBytes: (*int64)(f.ArtifactBytes), budget.InputTokens: f.InputTokens, budget.OutputTokens: f.OutputTokens,
		budget.ToolCalls: f.ToolCalls, budget.CostMicroUSD: f.CostMicroUSD,
	} {
		if v != nil {
			out[d] = *v
		}
	}
	return out
}

// key is how a file names a dimension.
func budgetKey(d budget.Dim) string {
	switch d {
	case budget.WallMS:
		return "budget.wall"
	case budget.CPUMS:
		return "budget.cpu"
	}
	return d.Field()
}
