class Eca < Formula
  desc "<<.Summary>>"
  homepage "<<.Homepage>>"
  version "<<.Version>>"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "<<.URL>>/eca-<<.Version>>-darwin-arm64.tar.gz"
      sha256 "<<.SHA256.darwin_arm64>>"
    end
    on_intel do
      url "<<.URL>>/eca-<<.Version>>-darwin-amd64.tar.gz"
      sha256 "<<.SHA256.darwin_amd64>>"
    end
  end

  on_linux do
    on_arm do
      url "<<.URL>>/eca-<<.Version>>-linux-arm64.tar.gz"
      sha256 "<<.SHA256.linux_arm64>>"
    end
    on_intel do
      url "<<.URL>>/eca-<<.Version>>-linux-amd64.tar.gz"
      sha256 "<<.SHA256.linux_amd64>>"
    end
  end

  def install
    bin.install "eca", "ecp", "esrp"
    man1.install "man/eca.1"
    bash_completion.install "completions/eca.bash" => "eca"
    zsh_completion.install "completions/_eca"
    fish_completion.install "completions/eca.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/eca --version")
  end
end
