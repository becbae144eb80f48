// SPDX-License-Identifier: Apache-2.0

// Gives the processes of one dry run network ports of their own, so that runs of one program go side by side. Such a
// program may state a fixed port for its ranks (torchrun: 29500), and a second run would fail: the address is in use.
// With ULLAGE_DRYCARD_PORTS, the path of a file that all processes of the run share, a TCP socket that asks for port P
// of this machine gets one that is free. The file notes which. A connection to port P of this machine goes there, and
// getsockname() says P. Connections to ports that no process of the run has bound, such as a proxy's, go where they
// would go without this. Unset: nothing is changed.
//
//   bind(P) --> port M, free --> file[P] = M        connect(P) --> file[P] is M: connect(M)

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace ullage::drycard {
namespace {

using Port = std::uint16_t;
using Table = std::array<std::atomic<Port>, 65536>;  // the port that a port stands for; 0: none

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
// Looked up at the first call, because the constructor of another library may be that.
int next_bind(int socket, const sockaddr* address, socklen_t size) {
  static const auto found = next<decltype(bind)>("bind");
  return found(socket, address, size);
}
int next_connect(int socket, const sockaddr* address, socklen_t size) {
  static const auto found = next<decltype(connect)>("connect");
  return found(socket, address, size);
}
int next_getsockname(int socket, sockaddr* address, socklen_t* size) {
  static const auto found = next<decltype(getsockname)>("getsockname");
  return found(socket, address, size);
}

Table* map_table() {
  const char* path = std::getenv("ULLAGE_DRYCARD_PORTS");
  if (path == nullptr || *path == '\0') return nullptr;
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return nullptr;
  void* at = MAP_FAILED;
  if (ftruncate(file, sizeof(Table)) == 0) {
    at = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  return at == MAP_FAILED ? nullptr : static_cast<Table*>(at);
}

// Null: ports are left as they are.
Table* table() {
  static Table* const mapped = map_table();
  return mapped;
}

// An address of a TCP socket, as a copy whose port can be changed.
class TcpAddress final {
 public:
  TcpAddress(const sockaddr* address, socklen_t size) {
    if (address == nullptr || size < sizeof(sa_family_t) || size > sizeof of_) return;
    std::memcpy(&of_, address, size);
    if (of_.ss_family == AF_INET && size >= sizeof(sockaddr_in)) port_ = &reinterpret_cast<sockaddr_in&>(of_).sin_port;
    if (of_.ss_family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
      port_ = &reinterpret_cast<sockaddr_in6&>(of_).sin6_port;
    }
  }
  TcpAddress(const TcpAddress&) = delete;
  TcpAddress& operator=(const TcpAddress&) = delete;

  explicit operator bool() const { return port_ != nullptr; }
  Port port() const { return ntohs(*port_); }
  void set_port(Port port) { *port_ = htons(port); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&of_); }

  // Is it an address of this machine?
  bool is_here() const {
    in_addr v4{};
    if (of_.ss_family == AF_INET) {
      v4 = reinterpret_cast<const sockaddr_in&>(of_).sin_addr;
    } else {
      const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(of_).sin6_addr;
      if (!IN6_IS_ADDR_V4MAPPED(&v6)) {
        return IN6_IS_ADDR_LOOPBACK(&v6) || IN6_IS_ADDR_UNSPECIFIED(&v6) || is_interface(AF_INET6, &v6);
      }
      std::memcpy(&v4, v6.s6_addr + 12, sizeof v4);
    }
    const std::uint32_t number = ntohl(v4.s_addr);
    return number >> 24 == 127 || number == INADDR_ANY || is_interface(AF_INET, &v4);
  }

 private:
  static bool is_interface(int family, const void* wanted) {
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) return false;
    bool found = false;
    for (const ifaddrs* one = all; one != nullptr && !found; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != family) continue;
      if (family == AF_INET) {
        found = std::memcmp(&reinterpret_cast<sockaddr_in*>(one->ifa_addr)->sin_addr, wanted, sizeof(in_addr)) == 0;
      } else {
        found = std::memcmp(&reinterpret_cast<sockaddr_in6*>(one->ifa_addr)->sin6_addr, wanted, sizeof(in6_addr)) == 0;
      }
    }
    freeifaddrs(all);
    return found;
  }

  sockaddr_storage of_{};
  in_port_t* port_ = nullptr;
};

bool is_stream(int socket) {
  int type = 0;
  socklen_t size = sizeof type;
  return getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

// The port that the socket really has; 0: not known.
Port real_port(int socket) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (next_getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) != 0) return 0;
  const TcpAddress address(reinterpret_cast<sockaddr*>(&own), size);
  return address ? address.port() : Port{0};
}

int bind_own(int socket, TcpAddress& address, socklen_t size, std::atomic<Port>& of) {
  if (const Port before = of.load(); before != 0) {  // bound earlier in this run, maybe by a socket that is closed
    address.set_port(before);
    return next_bind(socket, address.get(), size);
  }
  address.set_port(0);
  if (const int failed = next_bind(socket, address.get(), size); failed != 0) return failed;
  Port none = 0;
  if (const Port got = real_port(socket); got == 0 || of.compare_exchange_strong(none, got)) return 0;
  errno = EADDRINUSE;  // another process of the run was faster
  return -1;
}

}  // namespace
}  // namespace ullage::drycard

#define ULLAGE_EXPORTED extern "C" __attribute__((visibility("default")))

ULLAGE_EXPORTED int bind(int socket, const sockaddr* address, socklen_t size) noexcept {
  using namespace ullage::drycard;
  Table* ports = table();
  if (ports == nullptr || !is_stream(socket)) return next_bind(socket, address, size);
  TcpAddress own(address, size);
  if (!own || own.port() == 0) return next_bind(socket, address, size);
  return bind_own(socket, own, size, (*ports)[own.port()]);
}

ULLAGE_EXPORTED int connect(int socket, const sockaddr* address, socklen_t size) {
  using namespace ullage::drycard;
  Table* ports = table();
  if (ports == nullptr || !is_stream(socket)) return next_connect(socket, address, size);
  TcpAddress to(address, size);
  const Port real = to ? (*ports)[to.port()].load() : Port{0};
  if (real == 0 || !to.is_here()) return next_connect(socket, address, size);
  to.set_port(real);
  return next_connect(socket, to.get(), size);
}

ULLAGE_EXPORTED int getsockname(int socket, sockaddr* address, socklen_t* size) noexcept {
  using namespace ullage::drycard;
  const socklen_t room = size != nullptr ? *size : 0;
  const int failed = next_getsockname(socket, address, size);
  Table* ports = table();
  if (failed != 0 || ports == nullptr || !is_stream(socket)) return failed;
  const socklen_t written = std::min(room, *size);  // the kernel cuts off what has no room, and states the whole size
  TcpAddress own(address, written);
  if (!own || own.port() == 0) return 0;
  for (std::size_t stated = 1; stated < ports->size(); ++stated) {
    if ((*ports)[stated].load(std::memory_order_relaxed) != own.port()) continue;
    own.set_port(static_cast<Port>(stated));
    std::memcpy(address, own.get(), written);
    break;
  }
  return 0;
}
