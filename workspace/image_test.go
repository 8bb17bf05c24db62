package workspace

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
)

// A file that only begins with the first bytes of an image is not an image.
func TestDamagedImages(t *testing.T) {
	picture := image.NewPaletted(image.Rect(0, 0, 3, 2), color.Palette{color.Black, color.White})
	var asPNG, asJPEG, asGIF bytes.Buffer
	if err := png.Encode(&asPNG, picture); err != nil {
		t.Fatal(err)
	}
	if err := jpeg.Encode(&asJPEG, picture, nil); err != nil {
		t.Fatal(err)
	}
	if err := gif.Encode(&asGIF, picture, nil); err != nil {
		t.Fatal(err)
	}
	webp := "RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x02\x40\x00\x00\x07\x10\x11\x11\x88\x88\x08\x00\x00"
	for _, whole := range []string{asPNG.String(), asJPEG.String(), asGIF.String(), webp} {
		mediaType := ImageType([]byte(whole))
		if mediaType == "" {
			t.Fatalf("%q is not an image", whole[:12])
		}
		if err := CheckImage([]byte(whole), mediaType); err != nil {
			t.Errorf("%s: %v", mediaType, err)
		}
		if err := CheckImage([]byte(whole[:12]), mediaType); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s, 12 bytes: %v", mediaType, err)
		}
	}
	empty := bytes.Clone(asPNG.Bytes())
	copy(empty[16:24], make([]byte, 8))
	if err := CheckImage(empty, "image/png"); err == nil || !strings.Contains(err.Error(), "no pixels") {
		t.Errorf("without pixels: %v", err)
	}
}

func FuzzCheckImage(f *testing.F) {
	f.Add([]byte("\x89PNG\r\n\x1a\n"))
	f.Add([]byte("\xff\xd8\xff\xff\xff\xc0"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		for _, mediaType := range []string{"image/png", "image/jpeg", "image/gif", "image/webp"} {
			_ = CheckImage(data, mediaType)
		}
	})
}
