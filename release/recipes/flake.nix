{
  description = "<<.Summary>>";
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixpkgs-unstable";
  outputs = { self, nixpkgs }:
    let
      archives = {
        x86_64-linux = { name = "linux-amd64"; sha256 = "<<.SHA256.linux_amd64>>"; };
        aarch64-linux = { name = "linux-arm64"; sha256 = "<<.SHA256.linux_arm64>>"; };
        x86_64-darwin = { name = "darwin-amd64"; sha256 = "<<.SHA256.darwin_amd64>>"; };
        aarch64-darwin = { name = "darwin-arm64"; sha256 = "<<.SHA256.darwin_arm64>>"; };
      };
      package = system: archive:
        let pkgs = nixpkgs.legacyPackages.${system}; in
        pkgs.stdenvNoCC.mkDerivation {
          pname = "eca";
          version = "<<.Version>>";
          src = pkgs.fetchurl {
            url = "<<.URL>>/eca-<<.Version>>-${archive.name}.tar.gz";
            inherit (archive) sha256;
          };
          dontStrip = true;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          installPhase = ''
            install -Dm755 -t $out/bin eca ecp esrp
            installManPage man/eca.1
            installShellCompletion --cmd eca --bash completions/eca.bash --zsh completions/_eca --fish completions/eca.fish
          '';
        };
    in {
      packages = builtins.mapAttrs (system: archive: { default = package system archive; }) archives;
    };
}
