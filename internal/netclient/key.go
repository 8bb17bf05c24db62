package netclient

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"hash"
	"strings"
)

// errPassphrase means that the passphrase is wrong or the key is damaged.
var errPassphrase = errors.New("wrong passphrase for the key")

// keyBlock finds the private key in a file.
func keyBlock(data []byte) (*pem.Block, error) {
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return nil, errors.New("the file contains no private key in PEM")
		}
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return block, nil
		}
	}
}

// inspectKey reports whether a key is encrypted.
func inspectKey(data []byte) (encrypted bool, err error) {
	block, err := keyBlock(data)
	if err != nil {
		return false, err
	}
	return block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED"), nil
}

// decryptKey decrypts a PEM key.
func decryptKey(data []byte, passphrase string) ([]byte, error) {
	block, err := keyBlock(data)
	if err != nil {
		return nil, err
	}
	switch {
	case block.Type == "ENCRYPTED PRIVATE KEY":
		plain, err := decryptPKCS8(block.Bytes, []byte(passphrase))
		if err != nil {
			return nil, err
		}
		block = &pem.Block{Type: "PRIVATE KEY", Bytes: plain}
	case strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED"):
		// This encryption is weak, but users have such keys; eca never creates any.
		plain, err := x509.DecryptPEMBlock(block, []byte(passphrase)) //nolint:staticcheck // see above
		if errors.Is(err, x509.IncorrectPasswordError) {
			return nil, errPassphrase
		}
		if err != nil {
			return nil, fmt.Errorf("the key cannot be decrypted: %w", err)
		}
		block = &pem.Block{Type: block.Type, Bytes: plain}
	}
	return pem.EncodeToMemory(block), nil
}

// The structures of RFC 5958 (EncryptedPrivateKeyInfo) and RFC 8018 (PBES2, PBKDF2).
type (
	encryptedKey struct {
		Algorithm pkix.AlgorithmIdentifier
		Data      []byte
	}
	pbes2 struct {
		KDF    pkix.AlgorithmIdentifier
		Cipher pkix.AlgorithmIdentifier
	}
	pbkdf2Params struct {
		Salt       []byte
		Iterations int
		KeyLength  int                      `asn1:"optional"`
		PRF        pkix.AlgorithmIdentifier `asn1:"optional"`
	}
)

// Object identifiers, by their dotted names.
const (
	oidPBES2  = "1.2.840.113549.1.5.13"
	oidPBKDF2 = "1.2.840.113549.1.5.12"
	oidScrypt = "1.3.6.1.4.1.11591.4.11"
)

// maxIterations limits the time of decrypting a key to a few seconds. Tools use some hundred
// thousand iterations.
const maxIterations = 10_000_000

// decryptPKCS8 decrypts a key that is encrypted with PBES2, PBKDF2 and AES or triple DES in CBC
// mode, the algorithms that OpenSSL uses.
func decryptPKCS8(der, passphrase []byte) ([]byte, error) {
	var info encryptedKey
	var scheme pbes2
	if err := unmarshal(der, &info); err != nil {
		return nil, err
	}
	if id := info.Algorithm.Algorithm.String(); id != oidPBES2 {
		return nil, unsupported("scheme", id)
	}
	if err := unmarshal(info.Algorithm.Parameters.FullBytes, &scheme); err != nil {
		return nil, err
	}
	var iv []byte
	if err := unmarshal(scheme.Cipher.Parameters.FullBytes, &iv); err != nil {
		return nil, err
	}
	size, newCipher, err := cipherOf(scheme.Cipher.Algorithm.String())
	if err != nil {
		return nil, err
	}
	key, err := deriveKey(scheme.KDF, passphrase, size)
	if err != nil {
		return nil, err
	}
	block, err := newCipher(key)
	if err != nil {
		return nil, err
	}
	if len(iv) != block.BlockSize() || len(info.Data) == 0 || len(info.Data)%block.BlockSize() != 0 {
		return nil, errors.New("the key is damaged")
	}
	plain := make([]byte, len(info.Data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, info.Data)
	pad := int(plain[len(plain)-1])
	if pad == 0 || pad > block.BlockSize() || pad > len(plain) {
		return nil, errPassphrase
	}
	plain = plain[:len(plain)-pad]
	if _, err := x509.ParsePKCS8PrivateKey(plain); err != nil {
		return nil, errPassphrase // with a wrong passphrase the padding is valid once in 256 times
	}
	return plain, nil
}

func cipherOf(id string) (size int, newCipher func([]byte) (cipher.Block, error), err error) {
	switch id {
	case "2.16.840.1.101.3.4.1.2":
		return 16, aes.NewCipher, nil
	case "2.16.840.1.101.3.4.1.22":
		return 24, aes.NewCipher, nil
	case "2.16.840.1.101.3.4.1.42":
		return 32, aes.NewCipher, nil
	case "1.2.840.113549.3.7":
		return 24, des.NewTripleDESCipher, nil
	}
	return 0, nil, unsupported("cipher", id)
}

func deriveKey(kdf pkix.AlgorithmIdentifier, passphrase []byte, size int) ([]byte, error) {
	switch id := kdf.Algorithm.String(); id {
	case oidPBKDF2:
	case oidScrypt:
		return nil, errors.New("keys encrypted with scrypt are not supported; convert it: openssl pkcs8 -topk8 -v2 aes-256-cbc -in KEY -out NEW")
	default:
		return nil, unsupported("key derivation", id)
	}
	var p pbkdf2Params
	if err := unmarshal(kdf.Parameters.FullBytes, &p); err != nil {
		return nil, err
	}
	if p.Iterations < 1 || p.Iterations > maxIterations || p.KeyLength != 0 && p.KeyLength != size {
		return nil, errors.New("the key is damaged")
	}
	var newHash func() hash.Hash
	switch id := p.PRF.Algorithm.String(); id {
	case "", "1.2.840.113549.2.7":
		newHash = sha1.New
	case "1.2.840.113549.2.9":
		newHash = sha256.New
	case "1.2.840.113549.2.10":
		newHash = sha512.New384
	case "1.2.840.113549.2.11":
		newHash = sha512.New
	default:
		return nil, unsupported("hash", id)
	}
	return pbkdf2.Key(newHash, string(passphrase), p.Salt, p.Iterations, size)
}

// unmarshal decodes a single structure without trailing data.
func unmarshal(der []byte, into any) error {
	rest, err := asn1.Unmarshal(der, into)
	if err != nil || len(rest) > 0 {
		return errors.New("the key is damaged")
	}
	return nil
}

func unsupported(what, id string) error {
	return fmt.Errorf("the key is encrypted in a way that is not supported (%s %s); convert it: openssl pkcs8 -topk8 -v2 aes-256-cbc -in KEY -out NEW", what, id)
}
