// Package bench measures the real thing against what users have today, both in the same run because timings of a busy
// machine only compare as ratios. `make bench` prints:
//
//	RunTrue   `sbx run … true` from process start to exit, beside `docker run --rm` with the same settings
//	Stream    stored output in MB/s, beside docker's default log driver
//	Submit    durable submits through the socket
package bench
