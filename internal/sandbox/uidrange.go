package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sandboxd/internal/job"
)

// checkRange refuses a range of slot uids that meets an account or the subordinate ids of one: their owners could
// signal init, or own what a job owns. It sees files only; accounts of a directory service are the operator's to check.
func checkRange(cfg Config) error {
	first, count := uint64(cfg.UIDFirst), uint64(cfg.UIDCount)
	const most = 1<<32 - 2 // -1 means nobody
	switch {
	case cfg.UIDStride < DefaultUIDStride:
		return rangeError("slots.uid_stride", "%d is less than %d, the slot's own id and its group places", cfg.UIDStride, DefaultUIDStride)
	case first < 65536 || first+count-1 > most || count < uint64(cfg.UIDStride):
		return rangeError("slots.uid_first", "the range %d–%d does not lie between 65536 and %d or holds no slot", first, first+count-1, uint64(most))
	}
	for _, path := range cfg.PasswdFiles {
		if err := checkFile(path, first, count); err != nil {
			return err
		}
	}
	return nil
}

func rangeError(field, format string, args ...any) *job.Error {
	return job.Errorf(job.CodeInvalid, field, format, args...).WithHint("set [slots] uid_first and uid_count in the config to ids that nobody has")
}

func checkFile(path string, first, count uint64) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("checking the slot uids: %w", err)
	}
	defer f.Close()
	return checkIDs(path, f, first, count)
}

// idFields says for each file where the ids stand: passwd has the uid and the gid, group the gid, subuid and subgid a
// start and a length.
func checkIDs(path string, r io.Reader, first, count uint64) error {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.ContainsRune("#+-", rune(line[0])) { // + and - are of old name services
			continue
		}
		f := strings.Split(line, ":")
		ranges, err := idsOf(filepath.Base(path), f)
		if err != nil {
			return rangeError("slots", "%s line %d cannot be read, so it cannot be told whether the slot uids are free: %v", path, n, err)
		}
		for _, r := range ranges {
			if r[0] < first+count && first < r[0]+r[1] {
				return rangeError("slots.uid_first", "the range %d–%d meets %d–%d of %.64q in %s", first, first+count-1, r[0], r[0]+r[1]-1, f[0], path)
			}
		}
	}
	return lines.Err()
}

// idsOf returns ranges of ids as start and length.
func idsOf(base string, f []string) ([][2]uint64, error) {
	number := func(i int) (uint64, error) {
		if i >= len(f) {
			return 0, fmt.Errorf("%d fields", len(f))
		}
		return strconv.ParseUint(f[i], 10, 32)
	}
	switch base {
	case "passwd":
		uid, err := number(2)
		gid, err2 := number(3)
		return [][2]uint64{{uid, 1}, {gid, 1}}, errors.Join(err, err2)
	case "group":
		gid, err := number(2)
		return [][2]uint64{{gid, 1}}, err
	}
	start, err := number(1)
	length, err2 := number(2)
	return [][2]uint64{{start, length}}, errors.Join(err, err2)
}
