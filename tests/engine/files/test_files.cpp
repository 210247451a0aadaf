// SPDX-License-Identifier: GPL-3.0-or-later
// Files and folders that are written whole or not at all, and what is said when they cannot be read or written.
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "files/archive.h"
#include "files/files.h"
#include "files/npy.h"
#include "files/npz.h"
#include "scratch.h"
#include "sentences.h"
#include "test.h"

using namespace reclab;
using reclab::test::bytes_of_file;
using reclab::test::check_says;
using reclab::test::listing;
using reclab::test::Scratch;
using reclab::test::sentence_of;

namespace {

/// Root may do everything, so a test of permissions becomes another user for its time.
struct Unprivileged {
  bool root = ::geteuid() == 0;
  Unprivileged() {
    if (root && ::seteuid(65534) != 0) throw test::Skip("root cannot become another user here");
  }
  ~Unprivileged() {
    if (root && ::seteuid(0) != 0) std::abort();
  }
};

}  // namespace

TEST_CASE("reading says what is wrong with a path") {
  Scratch scratch;
  check_says(sentence_of([&] { read_file(scratch / "none.csv"); }), {"there is no file", "none.csv", "check the path"});
  check_says(sentence_of([&] { read_file(scratch.path()); }), {"is a folder", "give a file"});
  check_says(sentence_of([&] { read_file(scratch.file("f", "x") / "g"); }), {"there is no file", "not a folder"});
  check_says(sentence_of([&] { read_file("/dev/zero"); }), {"/dev/zero is a device"});
  check_says(sentence_of([&] { InputFile(scratch / "none.npz"); }), {"there is no file"});
  CHECK_EQUAL(read_file(scratch.file("g", std::string("a\0b", 3))), std::string("a\0b", 3));
  CHECK_EQUAL(read_file(scratch.file("e", "")), "");
}

TEST_CASE("a file that may not be read is named") {
  Scratch scratch;
  std::filesystem::permissions(scratch.path(), std::filesystem::perms(0755));
  const auto file = scratch.file("secret.csv", "1,2\n");
  std::filesystem::permissions(file, std::filesystem::perms::none);
  const Unprivileged user;
  check_says(sentence_of([&] { read_file(file); }), {"secret.csv may not be read", "permission"});
}

TEST_CASE("a file is written whole or not at all") {
  Scratch scratch;
  const auto file = scratch.file("a.txt", "old");
  {
    AtomicFile out(file);
    out.write("new, but never committed");
    CHECK_EQUAL(bytes_of_file(file), "old");
  }
  CHECK_EQUAL(bytes_of_file(file), "old");
  CHECK_EQUAL(listing(scratch.path()).size(), 1u);
  const std::string large(300'000, 'x');
  AtomicFile out(file);
  out.write("ab");
  out.write(large);
  out.write("c");
  CHECK_EQUAL(out.size(), 300'003u);
  CHECK_EQUAL(bytes_of_file(file), "old");
  out.commit();
  CHECK(bytes_of_file(file) == "ab" + large + "c");
  CHECK_EQUAL(listing(scratch.path()).size(), 1u);
}

TEST_CASE("writing says what is wrong with a path") {
  Scratch scratch;
  const auto says = [](const std::filesystem::path& file) { return sentence_of([&] { write_file(file, "x"); }); };
  check_says(says(scratch / "none/a.txt"), {"a.txt cannot be written", "folder does not exist", "make the folder"});
  check_says(says(scratch.file("f", "x") / "a.txt"), {"a.txt cannot be written", "is a file", "another folder"});
  check_says(says(scratch.path()), {"a folder has that name"});
  check_says(says(scratch / std::string(300, 'n')), {"too long"});
  check_says(says("/dev/full"), {"/dev/full cannot be written because it is a device"});
  check_says(says("/proc/a.txt"), {"/proc/a.txt cannot be written"});
  CHECK_EQUAL(bytes_of_file(scratch / "f"), "x");
  CHECK_EQUAL(listing(scratch.path()).size(), 1u);
}

TEST_CASE("a folder that does not permit writing is named") {
  Scratch scratch;
  std::filesystem::permissions(scratch.path(), std::filesystem::perms(0555));
  const Unprivileged user;
  check_says(sentence_of([&] { write_file(scratch / "a.txt", "x"); }),
             {"a.txt cannot be written", "does not permit it", "folder of your own"});
  check_says(sentence_of([&] { AtomicFolder(scratch / "out"); }), {"/out cannot be written", "does not permit it"});
}

TEST_CASE("a pipe is refused without waiting for who writes into it, and read where it is wanted") {
  Scratch scratch;
  const auto pipe = scratch / "p.json";
  CHECK_EQUAL(::mkfifo(pipe.c_str(), 0600), 0);
  check_says(sentence_of([&] { read_file(pipe); }), {"p.json is a pipe", "save its data in a file"});
  check_says(sentence_of([&] { InputFile{pipe}; }), {"p.json is a pipe", "save its data in a file"});
  const std::string data(200'000, 'x');
  std::jthread writer([&] {
    std::ofstream out(pipe, std::ios::binary);  // waits for the reader
    out << data;
  });
  CHECK(read_file(pipe, Pipes::read) == data);
}

TEST_CASE("what a process that has ended left of a file or a folder is removed by the next writer, and of no other") {
  Scratch scratch;
  std::filesystem::create_directory(scratch / "out");
  std::filesystem::create_directory(scratch / "in place");
  std::filesystem::create_directory(scratch / "in place/folder");
  const pid_t child = ::fork();
  if (child == 0) {
    auto* file = new AtomicFile(scratch / "a.npz");
    file->write(std::string(100'000, 'x'));
    for (const char* name : {"out", "in place", "new"})
      (new AtomicFolder(scratch / name))->file("trace.npz").write(std::string(100'000, 'x'));
    _exit(0);
  }
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child && status == 0);
  const std::string number = std::to_string(child);
  CHECK_EQUAL(listing(scratch.path()).size(), 3u + 1 + 3 * 2);
  // A process that lives, whatever its number: this one. And what is no part.
  AtomicFile living(scratch / "a.npz");
  living.write("living");
  AtomicFolder other(scratch / "other");
  other.file("a.txt").write("other");
  for (const char* name : {".a.npz.part", ".a.npz.x-1.part", ".b.npz.1-1.part", ".a.npz.1-1.parts"}) scratch.file(name, "mine");
  const std::size_t kept = 3 + 1 + 2 + 4;
  CHECK_EQUAL(listing(scratch.path()).size(), kept + 3 * 2);  // the dead file's part is gone already
  {
    const AtomicFile next(scratch / "a.npz");
    CHECK_EQUAL(listing(scratch.path()).size(), kept + 1 + 3 * 2);
  }
  for (const char* name : {"out", "in place", "new"}) {
    AtomicFolder next(scratch / name);
    next.file("b.txt").write("next");
    next.commit();
  }
  const auto left = listing(scratch.path());
  CHECK_EQUAL(left.size(), kept + 1 + 3);  // "new" and a b.txt in each
  for (const std::string& name : left) CHECK_SAYS(name.find(number) == std::string::npos, name);
  living.commit();
  other.commit();
  CHECK_EQUAL(bytes_of_file(scratch / "a.npz"), "living");
  CHECK_EQUAL(bytes_of_file(scratch / "other/a.txt"), "other");
}

TEST_CASE("a folder that is written keeps its mode and its other files, through links and in turns") {
  Scratch scratch;
  std::filesystem::create_directory(scratch / "out");
  std::filesystem::permissions(scratch / "out", std::filesystem::perms(0750));
  scratch.file("out/mine.txt", "mine");
  std::filesystem::create_directory_symlink("out", scratch / "link");
  AtomicFolder first(scratch / "out"), second(scratch / "link/");
  first.file("a.txt").write("first");
  second.file("a.txt").write("second");
  first.commit();
  scratch.file("out/late.txt", "late");
  second.commit();
  CHECK(listing(scratch.path()) == (std::set<std::string>{"link", "out", "out/a.txt", "out/late.txt", "out/mine.txt"}));
  CHECK(std::filesystem::is_symlink(scratch / "link"));
  CHECK_EQUAL(bytes_of_file(scratch / "out/a.txt"), "second");
  CHECK(std::filesystem::status(scratch / "out").permissions() == std::filesystem::perms(0750));
  CHECK_EQUAL(std::filesystem::hard_link_count(scratch / "out/mine.txt"), 1u);

  // The current folder stays the one it is.
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(scratch / "out");
  AtomicFolder here("");
  here.file("a.txt").write("here");
  here.commit();
  const bool same = std::filesystem::exists("a.txt");
  std::filesystem::current_path(before);
  CHECK(same);
  CHECK_EQUAL(bytes_of_file(scratch / "out/a.txt"), "here");
  CHECK_EQUAL(listing(scratch / "out").size(), 3u);
}

TEST_CASE("a folder that a process works in is written file by file") {
  Scratch scratch;
  std::filesystem::create_directory(scratch / "out");
  scratch.file("out/a.txt", "old");
  std::array<int, 2> ready{}, done{};
  CHECK(::pipe(ready.data()) == 0 && ::pipe(done.data()) == 0);
  const pid_t shell = ::fork();
  if (shell == 0) {
    char byte = 0;
    ::close(done[1]);
    const bool there = ::chdir((scratch / "out").c_str()) == 0 && ::write(ready[1], "x", 1) == 1;
    static_cast<void>(::read(done[0], &byte, 1) == 0);  // until the other end is closed
    struct stat status{};
    _exit(there && ::stat("a.txt", &status) == 0 && status.st_size == 3 ? 0 : 1);
  }
  char byte = 0;
  CHECK(::read(ready[0], &byte, 1) == 1);
  AtomicFolder folder(scratch / "out");
  struct stat before{}, after{};
  CHECK(::stat((scratch / "out").c_str(), &before) == 0);
  folder.file("a.txt").write("new");
  folder.file("b.txt").write("B");
  folder.commit();
  CHECK(::stat((scratch / "out").c_str(), &after) == 0 && before.st_ino == after.st_ino);
  for (const int end : {ready[0], ready[1], done[0], done[1]}) ::close(end);
  int status = 0;
  CHECK(::waitpid(shell, &status, 0) == shell && status == 0);
  CHECK_EQUAL(bytes_of_file(scratch / "out/a.txt"), "new");
}

TEST_CASE("a folder in one that may not be written, and another's folder, stay the folders that they are") {
  if (::geteuid() != 0) throw test::Skip("only root can give folders away");
  Scratch scratch;
  const std::filesystem::path out = scratch / "out";
  std::filesystem::create_directory(out);
  scratch.file("out/a.txt", "old");
  CHECK(::chown(out.c_str(), 65534, 65534) == 0 && ::chmod(scratch.path().c_str(), 0755) == 0);
  struct stat before{}, after{};
  CHECK(::stat(out.c_str(), &before) == 0);
  for (const bool root : {false, true}) {
    std::optional<Unprivileged> user;
    if (!root) user.emplace();
    AtomicFolder folder(out);
    folder.file("a.txt").write(root ? "root" : "user");
    folder.commit();
    CHECK_EQUAL(bytes_of_file(out / "a.txt"), root ? "root" : "user");
    CHECK_EQUAL(listing(scratch.path()).size(), 2u);
    CHECK(::stat(out.c_str(), &after) == 0 && after.st_ino == before.st_ino && after.st_uid == 65534);
  }
}

TEST_CASE("a mount point is written file by file") {
  Scratch scratch;
  std::filesystem::create_directory(scratch / "out");
  std::filesystem::create_directory(scratch / "source");
  // Of the same device, so that only the mount tells.
  if (::mount((scratch / "source").c_str(), (scratch / "out").c_str(), nullptr, MS_BIND, nullptr) != 0)
    throw test::Skip("nothing can be mounted here");
  struct Unmount {
    std::filesystem::path path;
    ~Unmount() { ::umount(path.c_str()); }
  } unmount{scratch / "out"};
  scratch.file("out/a.txt", "old");
  AtomicFolder folder(scratch / "out");
  folder.file("a.txt").write("new");
  folder.commit();
  CHECK_EQUAL(bytes_of_file(scratch / "source/a.txt"), "new");
  CHECK_EQUAL(listing(scratch / "source").size(), 1u);
}

TEST_CASE("a folder's files appear together") {
  Scratch scratch;
  AtomicFolder folder(scratch / "out/deep/");
  folder.file("a.txt").write("A");
  folder.file("b.txt").write("B");
  for (const std::string& name : listing(scratch.path())) CHECK_SAYS(name != "out/deep/a.txt" && name != "out/deep/b.txt", name);
  folder.commit();
  CHECK(listing(scratch.path()) == (std::set<std::string>{"out", "out/deep", "out/deep/a.txt", "out/deep/b.txt"}));
  CHECK_EQUAL(bytes_of_file(scratch / "out/deep/b.txt"), "B");
}

TEST_CASE("a folder is as it was when its files are not committed") {
  Scratch scratch;
  {
    AtomicFolder folder(scratch / "out/deep");
    folder.file("a.txt").write("A");
  }
  CHECK(listing(scratch.path()).empty());
  std::filesystem::create_directory(scratch / "there");
  scratch.file("there/a.txt", "old");
  {
    AtomicFolder folder(scratch / "there");
    AtomicFile& file = folder.file("a.txt");
    file.write("new");
    folder.finish(file);
  }
  CHECK(listing(scratch.path()) == (std::set<std::string>{"there", "there/a.txt"}));
  CHECK_EQUAL(bytes_of_file(scratch / "there/a.txt"), "old");
}

TEST_CASE("a folder is as it was when a file of it is gone before it has its name") {
  Scratch scratch;
  for (const bool exchanged : {true, false}) {
    const std::string name = exchanged ? "out" : "in place";
    std::filesystem::create_directory(scratch / name);
    if (!exchanged) std::filesystem::create_directory(scratch / (name + "/folder"));
    scratch.file(name + "/a.txt", "old");
    const auto before = listing(scratch / name);
    {
      AtomicFolder folder(scratch / name);
      folder.file("a.txt").write("new");
      folder.file("b.txt").write("B");
      folder.file("c.txt").write("C");
      int removed = 0;
      for (const std::string& path : listing(scratch.path()))
        if (path.ends_with("c.txt")) removed += std::filesystem::remove(scratch / path);
      CHECK_EQUAL(removed, 1);
      check_says(sentence_of([&] { folder.commit(); }), {"c.txt cannot be written"});
    }
    CHECK(listing(scratch / name) == before);
    CHECK_EQUAL(bytes_of_file(scratch / (name + "/a.txt")), "old");
  }
  CHECK_EQUAL(listing(scratch.path()).size(), 5u);
}

TEST_CASE("a folder cannot be made where a file is") {
  Scratch scratch;
  scratch.file("f", "x");
  check_says(sentence_of([&] { AtomicFolder(scratch / "f"); }), {"/f cannot be written into", "file", "choose a folder"});
  check_says(sentence_of([&] { AtomicFolder(scratch / "f/out/deep"); }), {"f/out/deep cannot be written", "another folder"});
  check_says(sentence_of([&] { AtomicFolder("/proc/out"); }), {"/proc/out cannot be written"});
  CHECK_EQUAL(listing(scratch.path()).size(), 1u);
}

TEST_CASE("a full disk leaves nothing behind and is said") {
  Scratch scratch;
  std::filesystem::create_directory(scratch / "small");
  if (::mount("tmpfs", (scratch / "small").c_str(), "tmpfs", 0, "size=256k") != 0)
    throw test::Skip("a small file system cannot be mounted here");
  struct Unmount {
    std::filesystem::path path;
    ~Unmount() { ::umount(path.c_str()); }
  } unmount{scratch / "small"};
  scratch.file("small/a.npz", "old");
  const std::vector<double> data(100'000, 0.5);
  check_says(sentence_of([&] { write_npy(scratch / "small/x.npy", {100'000}, std::span<const double>(data)); }),
             {"small/x.npy cannot be written because the disk is full", "free some space or export elsewhere"});
  check_says(sentence_of([&] {
               AtomicFolder folder(scratch / "small/out");
               folder.file("manifest.json").write("{}");
               AtomicFile& file = folder.file("trace.npz");
               NpzWriter writer(file);
               for (int i = 0; i < 10; ++i) writer.add(std::to_string(i), {5000}, std::span<const double>(data).first(5000));
               writer.finish();
               folder.commit();
             }),
             {"out/trace.npz cannot be written because the disk is full"});
  CHECK(listing(scratch / "small") == (std::set<std::string>{"a.npz"}));
  CHECK_EQUAL(bytes_of_file(scratch / "small/a.npz"), "old");
}

TEST_CASE("a limit on the size of files leaves nothing behind and is said") {
  Scratch scratch;
  struct rlimit before{};
  CHECK_EQUAL(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = before;
  small.rlim_cur = 100'000;
  CHECK_EQUAL(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::vector<double> data(100'000, 0.5);
  std::string sentence;
  try {
    write_npy(scratch / "x.npy", {100'000}, std::span<const double>(data));
  } catch (const Error& error) {
    sentence = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  check_says(sentence, {"x.npy cannot be written", "larger than this disk or account allows", "export elsewhere"});
  CHECK(listing(scratch.path()).empty());
}
