package esrp

// DecodeError is the error for JSON that is not a valid record.
type DecodeError struct {
	Field  string // path of the invalid field, such as inputs[0].name; empty for the record itself
	Reason string
}

func (e *DecodeError) Error() string {
	if e.Field == "" {
		return e.Reason
	}
	return e.Field + ": " + e.Reason
}

// DecodeRequest decodes a request (esrp.md 1.1) without validating it; see Request.Validate. The
// error is a *SyntaxError or a *DecodeError.
func DecodeRequest(doc []byte) (Request, error) {
	v, err := Parse(doc)
	if err != nil {
		return Request{}, err
	}
	return RequestOf(v)
}

// RequestOf converts a value to a request.
func RequestOf(v Value) (Request, error) {
	r := Request{Mode: Mode{Sync, uint64(DefaultTimeout.Milliseconds())}}
	err := decodeRecord(v, &r)
	return r, err
}

// DecodeResponse decodes a response (esrp.md 1.2) without validating it; see Response.Validate. The
// error is a *SyntaxError or a *DecodeError.
func DecodeResponse(doc []byte) (Response, error) {
	v, err := Parse(doc)
	if err != nil {
		return Response{}, err
	}
	return ResponseOf(v)
}

// ResponseOf converts a value to a response.
func ResponseOf(v Value) (Response, error) {
	var r Response
	err := decodeRecord(v, &r)
	return r, err
}

// DecodeJobEvent decodes an event of a job (esrp.md 1.3).
func DecodeJobEvent(doc []byte) (e JobEvent, err error) {
	v, err := Parse(doc)
	if err == nil {
		err = decodeRecord(v, &e)
	}
	return e, err
}
