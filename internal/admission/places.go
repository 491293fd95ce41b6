package admission

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

func checkPaths(ctx context.Context, c *Checker, a *attempt) error {
	if w := a.req.Workspace; w != nil {
		switch w.Mode {
		case "", job.WorkspaceRO:
		case job.WorkspaceOverlay, job.WorkspaceRW:
			return invalid("workspace.mode", "%q is not served by this version; use ro", string(w.Mode))
		default:
			return invalid("workspace.mode", "%.64q is not a mode; use ro", string(w.Mode))
		}
		resolved, dir, err := c.path(ctx, a.caller, "workspace", w.Path)
		if err != nil {
			return err
		}
		if !dir {
			return job.Errorf(job.CodeWorkspace, "workspace", "%q is not a directory", w.Path).WithHint("give a single file as a mount: -v %s:NAME", w.Path)
		}
		a.out.Spec.Workspace = &job.Workspace{Path: resolved, Mode: job.WorkspaceRO}
	}
	if n := len(a.req.Mounts); n > maxMounts {
		return invalid("mounts", "%d, at most %d are allowed", n, maxMounts)
	}
	var seen []string
	for _, m := range a.req.Mounts {
		if !namePattern.MatchString(m.Name) {
			return invalid("mounts", "%.64q is not a mount's name; use 1 to 63 of a-z A-Z 0-9 _ . - and begin with a letter or digit", m.Name)
		}
		if slices.Contains(seen, m.Name) {
			return invalid("mounts", "the name %q is used twice", m.Name)
		}
		seen = append(seen, m.Name)
		resolved, _, err := c.path(ctx, a.caller, "mounts."+m.Name, m.Source)
		if err != nil {
			return err
		}
		a.out.Spec.Mounts = append(a.out.Spec.Mounts, job.Mount{Source: resolved, Name: m.Name})
	}
	return nil
}

func (c *Checker) path(ctx context.Context, caller job.Caller, field, p string) (string, bool, error) {
	if len(p) > maxPath || !filepath.IsAbs(p) || strings.IndexByte(p, 0) >= 0 {
		return "", false, invalid(field, "%.128q is not an absolute host path of at most %d bytes", p, maxPath)
	}
	resolved, dir, err := c.paths.Check(ctx, caller, p)
	if err != nil {
		var e *job.Error
		if errors.As(err, &e) && e.Field == "" {
			e.Field = field
		}
		return "", false, err
	}
	if !utf8.ValidString(resolved) {
		return "", false, job.Errorf(job.CodeWorkspace, field, "%.128q is reached as %.128q, which is not UTF-8 and could not be stored", p, resolved)
	}
	return resolved, dir, nil
}

// checkImage resolves the name to an id. While the engine is away the name is kept and resolved when the job starts.
func checkImage(ctx context.Context, c *Checker, a *attempt) error {
	name := a.req.Image
	origin := envelope.FromRequest
	if name == "" {
		name, origin = c.rules.DefaultImage, envelope.FromDefault
	}
	if len(name) > maxWord || hasControl(name) || !utf8.ValidString(name) {
		return invalid("image", "%.64q is not an image's name", name)
	}
	if !slices.ContainsFunc(c.rules.AllowImages, func(allowed string) bool { return sameImage(allowed, name) }) {
		return job.Errorf(job.CodeImage, "image", "%.128q is not among the images that may run here: %s", name, strings.Join(c.rules.AllowImages, ", ")).
			WithHint("choose one of them, or let the operator add it to images.allow")
	}
	id, err := c.images.Resolve(ctx, name)
	if err != nil {
		if job.CodeOf(err) != job.CodeEngine {
			return err
		}
		id = ""
	}
	a.out.Spec.Image, a.out.Spec.ImageID = name, id
	a.out.Envelope.Posture.ImageID = id
	a.out.Envelope.Origins["image"] = origin
	return nil
}

// sameImage compares names with an absent tag read as latest.
func sameImage(a, b string) bool { return withTag(a) == withTag(b) }

func withTag(name string) string {
	if strings.Contains(name, "@") || strings.HasPrefix(name, "sha256:") {
		return name
	}
	if slash := strings.LastIndexByte(name, '/'); !strings.Contains(name[slash+1:], ":") {
		return name + ":latest"
	}
	return name
}
