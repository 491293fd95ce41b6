package engine

import (
	"context"
	"errors"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	imagetypes "github.com/docker/docker/api/types/image"
)

// refForm takes ids, names, tags and digests, which become part of a URL.
var refForm = regexp.MustCompile(`^` + refPart + `$`)

// ImageInspect describes an image, by id or by name.
func (d *Docker) ImageInspect(ctx context.Context, ref string) (Image, error) {
	var out Image
	err := d.onImage(ctx, OpImageInspect, ref, func(ctx context.Context, s *session) error {
		var err error
		out, err = imageOf(ctx, s, ref)
		return err
	})
	return out, err
}

func imageOf(ctx context.Context, s *session, ref string) (Image, error) {
	r, err := s.ImageInspect(ctx, ref)
	if err != nil {
		return Image{}, err
	}
	if r.ID == "" {
		return Image{}, errIncomplete
	}
	img := Image{
		ID: r.ID, RepoTags: copied(r.RepoTags), RepoDigests: copied(r.RepoDigests), OS: r.Os, Arch: r.Architecture,
		Size: r.Size, Layers: len(r.RootFS.Layers),
	}
	if c := r.Config; c != nil {
		img.Volumes = copied(slices.Sorted(maps.Keys(c.Volumes)))
		img.Env, img.User, img.WorkingDir = copied(c.Env), c.User, c.WorkingDir
		img.Entrypoint, img.Cmd = copied(c.Entrypoint), copied(c.Cmd)
		img.Healthcheck = isHealthcheck(c.Healthcheck)
		if len(c.Labels) > 0 {
			img.Labels = c.Labels
		}
	}
	return img, nil
}

// ImagePull fetches an image by name. progress, when not nil, gets one printable line per message of the engine. The
// engine gives no class to a registry's refusal once the pull has begun: it is Internal, and worth another try.
func (d *Docker) ImagePull(ctx context.Context, ref string, progress func(string)) error {
	return d.onImage(ctx, OpImagePull, ref, func(ctx context.Context, s *session) error {
		body, err := s.ImagePull(ctx, ref, imagetypes.PullOptions{})
		if err != nil && !exchangeOf(ctx).began.Load() {
			return &Error{Kind: Invalid, Op: OpImagePull, Ref: ref, Err: err} // the SDK did not take the name
		}
		if err != nil {
			return err
		}
		return follow(ctx, body, progress)
	})
}

// ImageLoad loads an archive as ImageSave or docker save writes it.
func (d *Docker) ImageLoad(ctx context.Context, archive io.Reader) error {
	return d.call(ctx, OpImageLoad, "", d.opt.ImageTimeout, func(ctx context.Context, s *session) error {
		answer, err := s.ImageLoad(ctx, archive)
		if err != nil {
			return err
		}
		return follow(ctx, answer.Body, nil)
	})
}

// ImageRemove takes away a name, and the image with its last name. One that is gone already is no error; one in use is
// Conflict.
func (d *Docker) ImageRemove(ctx context.Context, ref string) error {
	err := d.onImage(ctx, OpImageRemove, ref, func(ctx context.Context, s *session) error {
		_, err := s.ImageRemove(ctx, ref, imagetypes.RemoveOptions{PruneChildren: true})
		return err
	})
	if err != nil && KindOf(err) == NotFound {
		return nil
	}
	return err
}

// ImageSave streams the image as an archive. The reader must be closed; it fails when ctx, the deadline or d ends.
func (d *Docker) ImageSave(ctx context.Context, id string) (io.ReadCloser, error) {
	if err := d.checkRef(OpImageSave, id); err != nil {
		return nil, err
	}
	if err := d.enter(); err != nil {
		return nil, &Error{Kind: Unavailable, Op: OpImageSave, Ref: id, Err: err}
	}
	defer d.calls.Done()
	ctx, release := d.bound(ctx, OpImageSave, d.opt.ImageTimeout)
	var body io.ReadCloser
	err := d.run(ctx, OpImageSave, id, func(ctx context.Context, s *session) error {
		// An unknown image is a mere 500 to a save.
		if _, err := imageOf(ctx, s, id); err != nil {
			return err
		}
		var err error
		body, err = s.ImageSave(ctx, []string{id})
		return err
	})
	if err != nil {
		release()
		return nil, err
	}
	return &saving{ctx: ctx, id: id, host: d.opt.Host, body: body, release: sync.OnceFunc(release)}, nil
}

// saving is an archive on its way; its failures are typed too.
type saving struct {
	ctx     context.Context
	id      string
	host    string
	body    io.ReadCloser
	release func()
}

func (s *saving) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	if err == nil || err == io.EOF {
		return n, err
	}
	broken := &exchange{}
	broken.broken.Store(true)
	return n, fail(s.ctx, OpImageSave, s.id, s.host, broken, err)
}

func (s *saving) Close() error {
	s.release()
	return s.body.Close()
}

func (d *Docker) onImage(ctx context.Context, op, ref string, fn func(context.Context, *session) error) error {
	if err := d.checkRef(op, ref); err != nil {
		return err
	}
	limit := d.opt.CallTimeout
	if op == OpImagePull {
		limit = d.opt.ImageTimeout
	}
	return d.call(ctx, op, ref, limit, fn)
}

func (d *Docker) checkRef(op, ref string) error {
	if len(ref) > 512 || !refForm.MatchString(ref) || strings.Contains(ref, "..") || strings.Contains(ref, "//") {
		return &Error{Kind: Invalid, Op: op, Ref: oneLine(ref), Err: errors.New("not an image id or name")}
	}
	return nil
}
