package api

import "time"

// The paths, with {ref} for a job's whole id, an unambiguous beginning of it (4 characters at least) or its name.
const (
	PathJobs     = "/v1/jobs"
	PathJob      = "/v1/jobs/{ref}"
	PathCancel   = "/v1/jobs/{ref}/cancel"
	PathResult   = "/v1/jobs/{ref}/result"
	PathStream   = "/v1/jobs/{ref}/stream"
	PathStdin    = "/v1/jobs/{ref}/stdin"
	PathLease    = "/v1/jobs/{ref}/lease"
	PathTree     = "/v1/jobs/{ref}/tree"
	PathEvents   = "/v1/events"
	PathFreeze   = "/v1/freeze"
	PathThaw     = "/v1/thaw"
	PathProfiles = "/v1/profiles"
	PathVersion  = "/v1/version"
	PathHealth   = "/v1/health"
)

// Media types beside StreamType and ProblemType.
const (
	JSONType   = "application/json"
	BytesType  = "application/octet-stream" // bare output
	EventsType = "application/x-ndjson"     // one Event a line
	LeaseType  = "text/plain"               // one newline a beat
)

// Bounds of reads.
const (
	MaxWait      = 10 * time.Minute // ?wait= of a result
	MaxListLimit = 500              // ?limit= of a listing
	DefaultLimit = 100
	MaxListBytes = 4 << 20         // a page of a listing ends early here; Next says where to go on
	LeaseBeat    = 5 * time.Second // between two newlines on a lease
)
