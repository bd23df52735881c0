/*
 * The timed part of each workload as plain C, written from docs/WORKLOADS.md: what benches/harness_overhead.rs holds
 * fsgauge's own code against. Prints the nanoseconds between the two readings of the clock; for the walk the sums of its
 * five operations. Anything that goes wrong ends it with status 1 and a line that says what.
 *
 *   reference preallocation METHOD FILE BYTES
 *   reference fsync_append FILE APPENDS
 *   reference interleaved_streams DIRECTORY STREAMS BYTES
 *   reference partial_page_reads FILE WRITE_OFFSETS READ_OFFSETS    (files of 64-bit offsets)
 *   reference operation_latency DIRECTORY
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what)
{
	fprintf(stderr, "reference: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void write_whole(int fd, const char *data, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, data, length);

		if (written <= 0)
			fail("write");
		data += written;
		length -= (size_t)written;
	}
}

static uint64_t preallocation(const char *method, const char *path, off_t bytes)
{
	static char zeros[8192];
	uint64_t start;
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		fail("open");
	if (strcmp(method, "posix_fallocate") == 0) {
		start = now();
		errno = posix_fallocate(fd, 0, bytes);
		if (errno)
			fail("posix_fallocate");
		close(fd);
	} else if (strcmp(method, "fallocate") == 0) {
		start = now();
		if (fallocate(fd, 0, 0, bytes))
			fail("fallocate");
		close(fd);
	} else if (strcmp(method, "mmap_memset") == 0) {
		char *mapping;

		if (pwrite(fd, "0", 1, bytes - 1) != 1)
			fail("pwrite");
		mapping = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (mapping == MAP_FAILED)
			fail("mmap");
		start = now();
		memset(mapping, 0, (size_t)bytes);
		munmap(mapping, (size_t)bytes);
		close(fd);
	} else {
		size_t chunk = strcmp(method, "write_4k") == 0 ? 4096 : 8192;

		start = now();
		for (off_t left = bytes; left > 0;) {
			size_t length = left < (off_t)chunk ? (size_t)left : chunk;

			write_whole(fd, zeros, length);
			left -= (off_t)length;
		}
		close(fd);
	}
	return now() - start;
}

enum { BLOCK = 4096, PAYLOAD = 1 << 20 };
static char payload[PAYLOAD];

static void fill_payload(void)
{
	uint64_t state = 88172645463325252u;

	for (size_t i = 0; i < PAYLOAD; i += 8) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		memcpy(payload + i, &state, 8);
	}
}

static uint64_t fsync_append(const char *path, long appends)
{
	uint64_t start;
	size_t at = 0;
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	fill_payload();
	if (fd < 0 || fsync(fd))
		fail(path);
	start = now();
	for (long append = 0; append < appends; append++) {
		write_whole(fd, payload + at, BLOCK);
		at += BLOCK;
		if (at == PAYLOAD)
			at = 0;
		if (fdatasync(fd))
			fail("fdatasync");
	}
	return now() - start;
}

static uint64_t interleaved_streams(const char *directory, int streams, long bytes)
{
	int fds[64];
	uint64_t start;
	long turns = bytes / streams / BLOCK;
	size_t at = 0;

	fill_payload();
	for (int i = 0; i < streams; i++) {
		char path[4096];

		snprintf(path, sizeof path, "%s/stream-%d", directory, i + 1);
		fds[i] = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fds[i] < 0)
			fail(path);
	}
	start = now();
	for (long turn = 0; turn < turns; turn++) {
		for (int i = 0; i < streams; i++) {
			write_whole(fds[i], payload + at, BLOCK);
			at += BLOCK;
			if (at == PAYLOAD)
				at = 0;
		}
	}
	for (int i = 0; i < streams; i++) {
		if (fdatasync(fds[i]))
			fail("fdatasync");
		close(fds[i]);
	}
	return now() - start;
}

static uint64_t *read_offsets(const char *path, size_t *count)
{
	FILE *file = fopen(path, "rb");
	struct stat status;
	uint64_t *offsets;

	if (!file || fstat(fileno(file), &status))
		fail(path);
	*count = (size_t)status.st_size / sizeof *offsets;
	offsets = malloc((size_t)status.st_size + 1);
	if (!offsets || fread(offsets, sizeof *offsets, *count, file) != *count)
		fail(path);
	fclose(file);
	return offsets;
}

static uint64_t partial_page_reads(const char *path, const char *writes, const char *reads)
{
	enum { IO = 1024, WRITTEN = 64 << 10 };
	char buffer[IO];
	size_t write_count, read_count;
	uint64_t *write_at = read_offsets(writes, &write_count), *read_at = read_offsets(reads, &read_count);
	uint64_t start;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM))
		fail(path);
	for (size_t i = 0; i < write_count; i++)
		if (pwrite(fd, payload + i * IO % WRITTEN, IO, (off_t)write_at[i]) != IO)
			fail("pwrite");
	start = now();
	for (size_t i = 0; i < read_count; i++)
		if (pread(fd, buffer, IO, (off_t)read_at[i]) != IO)
			fail("pread");
	return now() - start;
}

enum { READDIR, LSTAT, OPEN, FIRST_BYTE, REST };
static uint64_t sums[5];
static char piece[64 << 10];

static void read_file(int directory, const char *name)
{
	uint64_t start = now();
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t got;

	sums[OPEN] += now() - start;
	if (fd < 0)
		fail(name);
	start = now();
	got = read(fd, piece, 1);
	if (got == 1) {
		sums[FIRST_BYTE] += now() - start;
		do {
			start = now();
			got = read(fd, piece, sizeof piece);
			sums[REST] += now() - start;
		} while (got > 0);
	}
	if (got < 0)
		fail(name);
	close(fd);
}

static void walk(int fd)
{
	DIR *entries = fdopendir(dup(fd));

	if (!entries)
		fail("fdopendir");
	for (;;) {
		uint64_t start = now();
		struct dirent *entry = readdir(entries);
		struct stat status;
		int failed;

		sums[READDIR] += now() - start;
		if (!entry)
			break;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		start = now();
		failed = fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW);
		sums[LSTAT] += now() - start;
		if (failed)
			fail(entry->d_name);
		if (S_ISDIR(status.st_mode)) {
			int below = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			if (below < 0)
				fail(entry->d_name);
			walk(below);
			close(below);
		} else if (S_ISREG(status.st_mode)) {
			read_file(fd, entry->d_name);
		}
	}
	closedir(entries);
}

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "preallocation") == 0) {
		printf("%llu\n", (unsigned long long)preallocation(argv[2], argv[3], atoll(argv[4])));
	} else if (argc == 4 && strcmp(argv[1], "fsync_append") == 0) {
		printf("%llu\n", (unsigned long long)fsync_append(argv[2], atol(argv[3])));
	} else if (argc == 5 && strcmp(argv[1], "interleaved_streams") == 0 && atoi(argv[3]) >= 1 && atoi(argv[3]) <= 64) {
		printf("%llu\n", (unsigned long long)interleaved_streams(argv[2], atoi(argv[3]), atol(argv[4])));
	} else if (argc == 5 && strcmp(argv[1], "partial_page_reads") == 0) {
		printf("%llu\n", (unsigned long long)partial_page_reads(argv[2], argv[3], argv[4]));
	} else if (argc == 3 && strcmp(argv[1], "operation_latency") == 0) {
		int root = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (root < 0)
			fail(argv[2]);
		walk(root);
		for (int i = 0; i < 5; i++)
			printf("%llu ", (unsigned long long)sums[i]);
		printf("\n");
	} else {
		fprintf(stderr, "reference: see the head of reference.c for the arguments\n");
		return 1;
	}
	return 0;
}
