package server

import (
	"sandboxd/api"
	"sandboxd/internal/admission"
)

func toTools(t *api.Tools) admission.Tools {
	if t == nil {
		return admission.Tools{}
	}
	return admission.Tools(*t)
}

func toBudget(b *api.Budget) admission.Budget {
	if b == nil {
		return admission.Budget{}
	}
	return admission.Budget{
		WallMS:        wholeMS(b.Wall),
		CPUMS:         wholeMS(b.CPU),
		EgressBytes:   amount(b.EgressBytes),
		OutputBytes:   amount(b.OutputBytes),
		ArtifactBytes: amount(b.ArtifactBytes),
		InputTokens:   amount(b.InputTokens),
		OutputTokens:  amount(b.OutputTokens),
		ToolCalls:     amount(b.ToolCalls),
		CostMicroUSD:  amount(b.CostMicroUSD),
		Strict:        b.Strict,
		Inherit:       b.Inherit,
	}
}

func toProject(p *api.ProjectLimits) *admission.Project {
	if p == nil {
		return nil
	}
	return &admission.Project{
		Limits:    toLimits(p.Limits),
		TimeoutMS: wholeMS(p.Timeout),
		Budget:    toBudget(p.Budget),
		Trust:     p.Trust,
		MaxRisk:   p.MaxRisk,
		Tools:     toTools(p.Tools),
	}
}
