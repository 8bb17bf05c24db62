package workspace

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// CheckImage checks that data begins with a complete header of a type that ImageType returns, and
// that the width and height are not zero. It does not decode the pixels. Callers put the name of the
// image before the text of the error.
func CheckImage(data []byte, mediaType string) error {
	var width, height int
	var ok bool
	switch mediaType {
	case "image/png":
		width, height, ok = pngSize(data)
	case "image/gif":
		if ok = len(data) >= 13; ok {
			width, height = int(binary.LittleEndian.Uint16(data[6:])), int(binary.LittleEndian.Uint16(data[8:]))
		}
	case "image/jpeg":
		width, height, ok = jpegSize(data)
	case "image/webp":
		width, height, ok = webpSize(data)
	}
	switch {
	case !ok:
		return errors.New("is a damaged image: its header is incomplete or invalid; export or download it again")
	case width == 0 || height == 0:
		return errors.New("is a damaged image: it has no pixels; export or download it again")
	}
	return nil
}

func pngSize(data []byte) (width, height int, ok bool) {
	const chunk, end = 8, 33 // of the first chunk
	if len(data) < end || string(data[chunk+4:chunk+8]) != "IHDR" {
		return 0, 0, false
	}
	return int(binary.BigEndian.Uint32(data[16:])), int(binary.BigEndian.Uint32(data[20:])), true
}

// jpegSize reads the first frame header (ITU-T T.81, B.2.2).
func jpegSize(data []byte) (width, height int, ok bool) {
	for at := 2; at+4 <= len(data); {
		if data[at] != 0xff {
			return 0, 0, false
		}
		marker := data[at+1]
		if marker == 0xff { // padding
			at++
			continue
		}
		const dht, jpg, dac = 0xc4, 0xc8, 0xcc // in the range of frame headers, but other markers
		if marker >= 0xc0 && marker <= 0xcf && marker != dht && marker != jpg && marker != dac {
			if at+9 > len(data) {
				return 0, 0, false
			}
			return int(binary.BigEndian.Uint16(data[at+7:])), int(binary.BigEndian.Uint16(data[at+5:])), true
		}
		at += 2 + int(binary.BigEndian.Uint16(data[at+2:]))
	}
	return 0, 0, false
}

// webpSize reads the first chunk (RFC 9649).
func webpSize(data []byte) (width, height int, ok bool) {
	const minLossless, minOther = 25, 30 // bytes that are needed
	switch {
	case len(data) < minLossless:
	case string(data[12:16]) == "VP8L":
		bits := binary.LittleEndian.Uint32(data[21:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1, data[20] == 0x2f
	case len(data) < minOther:
	case string(data[12:16]) == "VP8X":
		return 1 + int(data[24]) + int(data[25])<<8 + int(data[26])<<16, 1 + int(data[27]) + int(data[28])<<8 + int(data[29])<<16, true
	case string(data[12:16]) == "VP8 ":
		ok = bytes.Equal(data[23:26], []byte{0x9d, 0x01, 0x2a})
		return int(binary.LittleEndian.Uint16(data[26:]) & 0x3fff), int(binary.LittleEndian.Uint16(data[28:]) & 0x3fff), ok
	}
	return 0, 0, false
}
