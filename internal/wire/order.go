package wire

// Stage is how far a job's numbered frames have come, as seen by the daemon.
type Stage uint8

// The stages, in their order.
const (
	StageFresh   Stage = iota // nothing came; ready must
	StageReady                // the stub waits
	StageStarted              // the command runs
	StageExited               // exited came: artifacts may follow, output may not
)

// Position is a place in the numbered frames of one job. The daemon stores it with what it stored of the stream, acks
// it, and hands it to AcceptResume after a restart.
type Position struct {
	Seq   uint64
	Stage Stage
}

// next is the position after a frame of type t, or ErrOrder if t may not come now. It reads as the life of a job.
func (p Position) next(t Type) (Position, error) {
	stage := p.Stage
	legal := false
	switch t {
	case TypeReady:
		legal, stage = p.Stage == StageFresh, StageReady
	case TypeStarted:
		legal, stage = p.Stage == StageReady, StageStarted
	case TypeExited: // without started when the command could not be started
		legal, stage = p.Stage == StageReady || p.Stage == StageStarted, StageExited
	case TypeOutput, TypeAgentLine, TypeResult:
		legal = p.Stage == StageStarted
	case TypeArtifactBegin, TypeArtifactChunk, TypeArtifactEnd:
		legal = p.Stage == StageExited
	}
	if !legal {
		return p, refuse(ErrOrder, t, "may not come at stage %d", p.Stage)
	}
	return Position{Seq: p.Seq + 1, Stage: stage}, nil
}
