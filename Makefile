# What one does with this repository. Everything runs on Debian 12 with Rust; what needs
# root says so. SELVEDGE_LAB_* variables are passed on: see tests/lab/README.md.

.DEFAULT_GOAL := help
.PHONY: help check test demo demo-down clean-lab install

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | column -t -s '|'

check: ## quick: format, lints, documentation, every test that needs neither root nor the lab
	tests/run quick

test: ## everything, the lab included (root to install packages; under an hour on 2 cores)
	tests/run all

demo: ## two nodes in QEMU, configured and verified over SSH (root to install packages)
	tests/lab/demo

demo-down: ## ends the demo's nodes
	tests/lab/demo down

clean-lab: ## ends this checkout's lab and removes what was built for labs
	tests/lab/lab clean --cache

PREFIX ?= /usr/local
install: ## the program, its manual pages and completions, below PREFIX (/usr/local)
	cargo build --release
	install -D -m 755 "$$(tests/run target)/release/selvedge" $(DESTDIR)$(PREFIX)/bin/selvedge
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/,man/man1 bash-completion/completions \
		zsh/site-functions fish/vendor_completions.d)
	$(DESTDIR)$(PREFIX)/bin/selvedge man --out $(DESTDIR)$(PREFIX)/share/man/man1
	$(DESTDIR)$(PREFIX)/bin/selvedge completions bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/selvedge
	$(DESTDIR)$(PREFIX)/bin/selvedge completions zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_selvedge
	$(DESTDIR)$(PREFIX)/bin/selvedge completions fish >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/selvedge.fish
