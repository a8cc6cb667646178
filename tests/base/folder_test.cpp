#include "base/folder.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "base/open_below.h"
#include "base/write_all.h"
#include "catch.h"
#include "temp_folder.h"

using namespace twinkle::base;
using namespace twinkle::test;
namespace fs = std::filesystem;

namespace {

// root/real/file, root/link → outside, root/real/link → outside/file; outside/file
struct Tree {
    Tree() {
        folder.write("root/real/file", "inside");
        folder.write("outside/file", "of somebody else");
        folder.write("outside/deep/file", "of somebody else");
        fs::create_symlink("../outside", folder / "root/link");
        fs::create_symlink(folder / "outside/file", folder / "root/real/link");
    }
    bool outside_is_as_before() const {
        return folder.read("outside/file") == "of somebody else" &&
               folder.read("outside/deep/file") == "of somebody else" &&
               std::distance(fs::recursive_directory_iterator(folder / "outside"),
                             fs::recursive_directory_iterator()) == 3;
    }
    TempFolder folder;
    const fs::path root = folder / "root";
};

int reason_of(int result) {
    return result == 0 ? 0 : errno;
}

int reason_of(const UniqueFd& file) {
    return file ? 0 : errno;
}

// Every way out through a link is closed; the returned number says which one is not.
int open_ways_out() {
    const Tree tree;
    const Folder folder(tree.root);
    const fs::path link = tree.root / "link";
    struct stat info{};
    int way = 0;
    const auto closed = [&](int reason) {
        ++way;
        return reason == ELOOP;
    };
    const bool all =
        closed(reason_of(folder.open(link / "file", O_RDONLY))) &&
        closed(reason_of(folder.open(link / "new", O_WRONLY | O_CREAT, 0600))) &&
        closed(reason_of(folder.open(tree.root / "real/link", O_RDONLY))) &&
        closed(reason_of(folder.open(tree.root / "real/link", O_WRONLY | O_CREAT, 0600))) &&
        closed(reason_of(folder.open(link, O_RDONLY | O_DIRECTORY))) &&
        closed(reason_of(folder.open(link / "deep/file", O_RDONLY))) &&
        closed(reason_of(folder.lstat(link / "file", info))) &&
        closed(reason_of(folder.unlink(link / "file"))) &&
        closed(reason_of(folder.rmdir(link / "deep"))) &&
        closed(reason_of(folder.rename(link / "file", tree.root / "mine"))) &&
        closed(reason_of(folder.rename(tree.root / "real/file", link / "file"))) &&
        closed(reason_of(folder.link(tree.root / "real/file", link / "other"))) &&
        closed(reason_of(folder.symlink("x", link / "other"))) &&
        closed(reason_of(folder.touch(link / "file"))) &&
        closed(reason_of(folder.make_folders(link / "a/b"))) &&
        closed(reason_of(folder.write_file(link / "file", "mine")));
    if (!all || !folder.entries(link).empty() || folder.is_folder(link) ||
        folder.is_file(link / "file") || folder.read_link(link / "file")) {
        return all ? 100 : way;
    }
    return tree.outside_is_as_before() ? 0 : 101;
}

// Makes openat2 fail as in a container whose filter does not know it.
void forbid_openat2(int reason) {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(reason)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{sizeof(program) / sizeof(program[0]), program};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0 ||
        ::syscall(SYS_openat2, -1, "", nullptr, 0) != -1 || errno != reason) {
        ::_exit(99);
    }
}

int in_child(const std::function<int()>& function) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::_exit(function());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// A cache's everyday operations.
int work_inside() {
    const Tree tree;
    const Folder folder(tree.root);
    const fs::path file = tree.root / "a/b/file";
    struct stat info{};
    const bool written =
        folder.make_folders(file.parent_path()) == 0 && folder.write_file(file, "one") == 0 &&
        folder.write_file(file, "two") == 0 && tree.folder.read("root/a/b/file") == "two" &&
        folder.entries(file.parent_path()).size() == 1;
    const bool moved = folder.rename(file, tree.root / "moved") == 0 &&
                       folder.link(tree.root / "moved", file) == 0 &&
                       folder.lstat(file, info) == 0 && info.st_nlink == 2 &&
                       folder.symlink("file", tree.root / "a/b/link") == 0 &&
                       folder.read_link(tree.root / "a/b/link") == "file";
    const bool gone = folder.remove_all(tree.root / "a") == 0 && !fs::exists(tree.root / "a") &&
                      fs::exists(tree.root / "moved");
    return written && moved && gone ? 0 : 1;
}

}  // namespace

TEST_CASE("no link below a folder is followed", "[folder]") {
    CHECK(open_ways_out() == 0);
    CHECK(work_inside() == 0);
}

TEST_CASE("without openat2, the same step by step", "[folder]") {
    for (const int reason : {ENOSYS, EPERM}) {
        CHECK(in_child([&] {
                  forbid_openat2(reason);
                  const int open = open_ways_out();
                  return open != 0 ? open : work_inside();
              }) == 0);
    }
}

TEST_CASE("the folder itself may be a link, and may be missing", "[folder]") {
    const Tree tree;
    fs::create_symlink("root", tree.folder / "moved");
    const Folder linked(tree.folder / "moved");
    CHECK(linked.is_file(tree.folder / "moved/real/file"));
    CHECK(linked.write_file(tree.folder / "moved/real/file", "changed") == 0);
    CHECK(tree.folder.read("root/real/file") == "changed");
    const Folder missing(tree.folder / "x/y");
    CHECK_FALSE(missing.is_folder(tree.folder / "x/y"));
    CHECK(missing.entries(tree.folder / "x/y").empty());
    CHECK(missing.make_folders(tree.folder / "x/y/z") == 0);
    CHECK(fs::is_directory(tree.folder / "x/y/z"));
}

TEST_CASE("removing a folder removes links, not what they lead to", "[folder]") {
    const Tree tree;
    fs::create_symlink("../../outside", tree.root / "real/folder");
    CHECK(Folder(tree.root).remove_all(tree.root / "real") == 0);
    CHECK_FALSE(fs::exists(tree.root / "real"));
    CHECK(tree.outside_is_as_before());
    CHECK(Folder(tree.root).remove_all(tree.root / "real") == 0);
    CHECK(Folder(tree.root).unlink(tree.root / "link") == 0);
    CHECK(tree.outside_is_as_before());
}

TEST_CASE("a file that is written replaces a link of its name", "[folder]") {
    const Tree tree;
    CHECK(Folder(tree.root).write_file(tree.root / "real/link", "mine") == 0);
    CHECK(fs::is_regular_file(fs::symlink_status(tree.root / "real/link")));
    CHECK(tree.folder.read("root/real/link") == "mine");
    CHECK(tree.outside_is_as_before());
    CHECK(Folder(tree.root).entries(tree.root / "real").size() == 2);
}

TEST_CASE("paths that are not below the folder are refused", "[folder]") {
    const Tree tree;
    const Folder folder(tree.root);
    for (const fs::path& path :
         {tree.folder / "outside/file", tree.root / "../outside/file",
          tree.root / "real/../../outside/file", fs::path(tree.root.string() + "x/file")}) {
        CHECK_FALSE(folder.open(path, O_RDONLY));
        CHECK(folder.unlink(path) != 0);
    }
    CHECK(folder.unlink(tree.root) != 0);
    CHECK(tree.outside_is_as_before());
    // The same without openat2, one folder after the other.
    CHECK(in_child([&] {
              forbid_openat2(ENOSYS);
              return folder.open(tree.root / "real/../../outside/file", O_RDONLY) ? 1 : 0;
          }) == 0);
}

TEST_CASE("the link in the way is found", "[folder]") {
    const Tree tree;
    const Folder folder(tree.root);
    CHECK(folder.find_link(tree.root / "link/deep/file") == tree.root / "link");
    CHECK(folder.find_link(tree.root / "real/link") == tree.root / "real/link");
    CHECK_FALSE(folder.find_link(tree.root / "real/file"));
}

TEST_CASE("all files below a folder are walked through, links not", "[folder]") {
    const Tree tree;
    std::vector<std::string> names;
    Folder(tree.root).walk(tree.root, [&](const Folder::Entry& entry) {
        names.push_back(entry.path.lexically_relative(tree.root).string());
    });
    std::sort(names.begin(), names.end());
    CHECK(names == std::vector<std::string>{"link", "real/file", "real/link"});
}
