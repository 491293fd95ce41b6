package admission

import (
	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

// askEnvelope says what a request asks in the words of the envelope, but for paths and the image's id.
func askEnvelope(r Request) envelope.Request {
	out := envelope.Request{
		Image:         r.Image,
		Amounts:       askAmounts(r.Limits, r.TimeoutMS),
		Budget:        askBudget(r.Budget),
		BudgetInherit: r.Budget.Inherit,
		Strict:        r.Budget.Strict,
		MaxDepth:      r.MaxDepth,
		MaxTreeJobs:   r.MaxTreeJobs,
		MaxTreeLive:   r.MaxTreeLive,
		Delegates:     r.Delegates,
		EnvInherit:    r.EnvInherit,
		Secrets:       r.Secrets,
		Trust:         r.Trust,
		MaxRisk:       r.MaxRisk,
		ToolsAllow:    r.Tools.Allow,
		ToolsDeny:     r.Tools.Deny,
		Mode:          r.Mode,
	}
	if r.Egress != nil {
		out.Egress = r.Egress.Mode
	}
	if r.Lease {
		out.Lease = &r.Lease
	}
	return out
}

// askProject is what the file of a workspace asks.
func askProject(p *Project) *envelope.Request {
	if p == nil {
		return nil
	}
	return &envelope.Request{
		Amounts:       askAmounts(p.Limits, p.TimeoutMS),
		Budget:        askBudget(p.Budget),
		BudgetInherit: p.Budget.Inherit,
		Strict:        p.Budget.Strict,
		Trust:         p.Trust,
		MaxRisk:       p.MaxRisk,
		ToolsAllow:    p.Tools.Allow,
		ToolsDeny:     p.Tools.Deny,
	}
}

func askAmounts(l Limits, timeout *int64) envelope.Ask {
	ask := envelope.Ask{}
	for name, v := range map[string]*int64{
		"cpus": l.MilliCPUs, "memory": l.Memory, "pids": l.Pids, "nofile": l.Nofile, "tmp_bytes": l.TmpBytes,
		"home_bytes": l.HomeBytes, "out_bytes": l.OutBytes, "output_keep": l.OutputKeep, "timeout": timeout,
	} {
		if v != nil {
			ask[name] = *v
		}
	}
	return ask
}

func askBudget(b Budget) budget.Limits {
	out := budget.Limits{}
	for d, v := range map[budget.Dim]*int64{
		budget.WallMS: b.WallMS, budget.CPUMS: b.CPUMS, budget.EgressBytes: b.EgressBytes, budget.OutputBytes: b.OutputBytes,
		budget.ArtifactBytes: b.ArtifactBytes, budget.InputTokens: b.InputTokens, budget.OutputTokens: b.OutputTokens,
		budget.ToolCalls: b.ToolCalls, budget.CostMicroUSD: b.CostMicroUSD,
	} {
		if v != nil {
			out[d] = *v
		}
	}
	return out
}

// agentTerms are the effective values that are handed to the agent.
func agentTerms(e envelope.Envelope, model string) *job.AgentTerms {
	return &job.AgentTerms{
		Trust: envelope.TrustOf(e.Trust), MaxRisk: e.MaxRisk, ToolsAllow: e.Tools.Allow, ToolsDeny: e.Tools.Deny, Mode: e.Mode, Model: model,
	}
}
