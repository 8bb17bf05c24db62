package a2a

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// mediaType is the media type of A2A's JSON over plain HTTP.
const mediaType = "application/a2a+json"

// serveREST answers calls over HTTP+JSON. The path below Endpoint and the HTTP verb select the same
// methods as over JSON-RPC.
func (s *Server) serveREST(w http.ResponseWriter, r *http.Request) {
	c := &call{overREST: true, url: s.endpointURL(r)}
	method, names, allowed := restMethod(r.Method, strings.TrimPrefix(r.URL.EscapedPath(), Endpoint+"/"))
	switch {
	case len(allowed) > 0:
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		c.answer(w, http.StatusMethodNotAllowed, nil, failure(codeMethod, "%s is not a method of %s", r.Method, r.URL.Path))
		return
	case method == "":
		c.answer(w, http.StatusNotFound, nil, failure(codeMethod, "%s is not an operation of A2A", r.URL.Path))
		return
	}
	c.method = method
	params := map[string]json.RawMessage{}
	if r.Method == http.MethodGet || r.Method == http.MethodDelete {
		if err := queryParams(r.URL.Query(), params); err != nil {
			c.answer(w, http.StatusOK, nil, err)
			return
		}
	} else {
		body, status, err := readBody(w, r)
		if err == nil && len(body) > 0 {
			if !json.Valid(body) {
				err = failure(codeParse, "the body is not valid JSON")
			} else if json.Unmarshal(camelCaseParams(body), &params) != nil {
				err = failure(codeParams, "the body must be an object")
			} else if params == nil { // the SDK for Go sends null for empty parameters
				params = map[string]json.RawMessage{}
			}
		}
		if err != nil {
			c.answer(w, status, nil, err)
			return
		}
	}
	for name, value := range names {
		params[name], _ = json.Marshal(value)
	}
	var err error
	if c.params, err = json.Marshal(params); err != nil {
		c.answer(w, http.StatusOK, nil, err)
		return
	}
	version := requestedVersion(r)
	if major, _, _ := strings.Cut(version, "."); !knownVersion(version) || major == "0" {
		c.answer(w, http.StatusOK, nil, failure(codeVersion, "version %q of A2A is not supported over HTTP+JSON; 1.0 is", version))
		return
	}
	s.execute(w, r, c)
}

// restMethod returns the A2A method for a verb and a path, and the parameters in the path. If the
// path does not support the verb, allowed lists the verbs that it supports.
func restMethod(verb, path string) (method string, names map[string]string, allowed []string) {
	verbs := map[string]string{}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		name, err := url.PathUnescape(segment)
		if err != nil || name == "" {
			return "", nil, nil
		}
		segments[i] = name
	}
	id, action := "", ""
	if len(segments) > 1 {
		id, action, _ = strings.Cut(segments[1], ":")
	}
	switch {
	case path == "message:send":
		verbs = map[string]string{http.MethodPost: "SendMessage"}
	case path == "message:stream":
		verbs = map[string]string{http.MethodPost: "SendStreamingMessage"}
	case path == "extendedAgentCard":
		verbs = map[string]string{http.MethodGet: "GetExtendedAgentCard"}
	case path == "tasks":
		verbs = map[string]string{http.MethodGet: "ListTasks"}
	case segments[0] != "tasks":
	case len(segments) == 2 && action == "cancel":
		verbs, names = map[string]string{http.MethodPost: "CancelTask"}, map[string]string{"id": id}
	case len(segments) == 2 && action == "subscribe":
		verbs = map[string]string{http.MethodGet: "SubscribeToTask", http.MethodPost: "SubscribeToTask"}
		names = map[string]string{"id": id}
	case len(segments) == 2:
		verbs, names = map[string]string{http.MethodGet: "GetTask"}, map[string]string{"id": segments[1]}
	case segments[2] != "pushNotificationConfigs":
	case len(segments) == 3:
		verbs = map[string]string{http.MethodGet: "ListTaskPushNotificationConfigs", http.MethodPost: "CreateTaskPushNotificationConfig"}
		names = map[string]string{"taskId": segments[1]}
	case len(segments) == 4:
		verbs = map[string]string{http.MethodGet: "GetTaskPushNotificationConfig", http.MethodDelete: "DeleteTaskPushNotificationConfig"}
		names = map[string]string{"taskId": segments[1], "id": segments[3]}
	}
	if method = verbs[verb]; method != "" {
		return method, names, nil
	}
	for _, known := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		if verbs[known] != "" {
			allowed = append(allowed, known)
		}
	}
	return "", nil, allowed
}

// queryParams reads parameters from a query. Their names may be in camel case or snake case.
func queryParams(query url.Values, into map[string]json.RawMessage) error {
	for key, values := range query {
		name, value := camelName(key), any(values[0])
		switch name {
		case "pageSize", "historyLength":
			n, err := strconv.Atoi(values[0])
			if err != nil {
				return failure(codeParams, "%s must be an integer, not %q", name, values[0])
			}
			if name == "pageSize" && n == 0 { // in Protocol Buffers, 0 means unset
				continue
			}
			value = n
		case "includeArtifacts":
			b, err := strconv.ParseBool(values[0])
			if err != nil {
				return failure(codeParams, "%s must be true or false, not %q", name, values[0])
			}
			value = b
		case "lastUpdatedAfter": // the name before 1.0, which Go clients still use
			name = "statusTimestampAfter"
		}
		into[name], _ = json.Marshal(value)
	}
	return nil
}

// restError returns an error in the form of HTTP+JSON (google.rpc.Status), and its HTTP status. If
// the given status is 200, the code of the error decides.
func restError(err error, status int) (int, any) {
	known := asError(err)
	defaultStatus, word := http.StatusInternalServerError, "INTERNAL"
	switch known.Code {
	case codeParse, codeRequest, codeParams, codeContentType:
		defaultStatus, word = http.StatusBadRequest, "INVALID_ARGUMENT"
	case codeNotFound:
		defaultStatus, word = http.StatusNotFound, "NOT_FOUND"
	case codeNotCancelable, codeNoPush, codeUnsupported, codeVersion:
		defaultStatus, word = http.StatusBadRequest, "FAILED_PRECONDITION"
	case codeMethod:
		defaultStatus, word = http.StatusNotFound, "UNIMPLEMENTED"
	}
	if status == http.StatusOK {
		status = defaultStatus
	}
	details := known.Data
	if details == nil {
		details = json.RawMessage("[]")
	}
	return status, restFailure{googleStatus{status, details, known.Message, word}}
}

type restFailure struct {
	Error googleStatus `json:"error"`
}

type googleStatus struct {
	Code    int             `json:"code"`
	Details json.RawMessage `json:"details"`
	Message string          `json:"message"`
	Status  string          `json:"status"`
}
