// Package server answers the daemon API: HTTP/1.1 and JSON over unix sockets. It names the caller by the socket a
// request came on, decodes strictly, hides what is not the caller's, and bounds every connection, body and wait. It
// decides nothing about jobs: it asks Jobs, and reads Records and Streams.
//
// Words of this room:
//
//	route    one line of the route table (routes.go), from which a test checks api/openapi.yaml
//	ref      how a request names a job: whole id, beginning of it, or name
//	problem  an error reply, application/problem+json
//	follow   a reply that goes on until the job or the daemon ends
//	beat     one newline on a lease connection
//	inside   in a job, whose socket (JobSocket) names the caller
//	meter    the bounds of one job's requests
//
// A request goes: Socket.Accept (kernel peer credentials) or JobSocket.Accept (the job it was made for) → gate (bounds on
// connections) → net/http → dispatch (meter, route, panic, log) → handler → problem or reply.
package server
