// SPDX-License-Identifier: GPL-3.0-or-later
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "array/error.h"
#include "files/files.h"
#include "streams/rows.h"

namespace reclab::sources_by_name {
namespace {

int connected(const std::string& to) {
  const auto refuse = [&](const std::string& what) {
    throw Error("socket:" + printable(to) + " " + what +
                    ": give the port of a server on this machine that listens, or the path of its "
                    "Unix socket.",
                {.file = to, .parameter = "source"});
  };
  sockaddr_in internet{};
  sockaddr_un local{};
  const bool is_port = std::ranges::all_of(to, [](char c) { return c >= '0' && c <= '9'; });
  if (is_port) {
    std::uint16_t port = 0;
    if (std::from_chars(to.data(), to.data() + to.size(), port).ec != std::errc() || port == 0) refuse("is no port from 1 to 65535");
    internet.sin_family = AF_INET;
    internet.sin_port = htons(port);
    internet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  } else {
    if (to.size() >= sizeof local.sun_path) refuse("has a path that is too long for a socket");
    local.sun_family = AF_UNIX;
    std::ranges::copy(to, local.sun_path);
  }
  const int made = ::socket(is_port ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto* address = is_port ? reinterpret_cast<const sockaddr*>(&internet) : reinterpret_cast<const sockaddr*>(&local);
  if (made >= 0 && connect(made, address, is_port ? sizeof internet : sizeof local) == 0) return made;
  const std::string why = std::strerror(errno);
  if (made >= 0) close(made);
  refuse("cannot be reached (" + why + ")");
  return -1;
}

}  // namespace

StreamSourceInfo socket() {
  return {.argument = "PORT|PATH",
          .text = "Lines of numbers from a server on this machine: the port of 127.0.0.1, or the path of a Unix socket",
          .again = false,
          .make = [](const SourceChoice& choice) -> std::unique_ptr<StreamSource> {
            return std::make_unique<TextRows>(connected(choice.argument), "socket:" + choice.argument, TextRows::At::end_ends, false,
                                              choice.standardise);
          }};
}

}  // namespace reclab::sources_by_name
