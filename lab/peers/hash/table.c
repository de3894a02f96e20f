/*
 * The hash table of `lib/testing/probing` in plain C, and the measurement of `hosted/core/src/bench/hash.rs`:
 * open addressing, linear probing, FNV-1a, keys of 64 bits that are not zero, values of 64 bits, three
 * quarters full. Prints a JSON array of figures in ticks of the time-stamp counter.
 *
 * Usage: table CPU MIB
 * runs on that processor, and leaves out what takes more than so much memory.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <x86intrin.h>

struct entry {
	uint64_t key; /* 0: none */
	uint64_t value;
};

struct table {
	struct entry *entries;
	uint64_t mask;
	uint64_t used;
};

static uint64_t hash(uint64_t key)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (int i = 0; i < 8; i++) {
		hash ^= key & 0xff;
		hash *= 0x100000001b3;
		key >>= 8;
	}
	return hash;
}

static int insert(struct table *table, uint64_t key, uint64_t value)
{
	uint64_t place = hash(key) & table->mask;

	for (uint64_t step = 0; step <= table->mask; step++) {
		struct entry *entry = &table->entries[place];

		if (entry->key == 0) {
			entry->key = key;
			entry->value = value;
			table->used++;
			return 0;
		}
		if (entry->key == key) {
			entry->value = value;
			return 0;
		}
		place = (place + 1) & table->mask;
	}
	return -1;
}

static int lookup(const struct table *table, uint64_t key, uint64_t *value)
{
	uint64_t place = hash(key) & table->mask;

	for (uint64_t step = 0; step <= table->mask; step++) {
		const struct entry *entry = &table->entries[place];

		if (entry->key == key) {
			*value = entry->value;
			return 0;
		}
		if (entry->key == 0)
			return -1;
		place = (place + 1) & table->mask;
	}
	return -1;
}

/* Key number `number`: all are different, and in no order. */
static uint64_t key(uint64_t number)
{
	return (number + 1) * 0x9e3779b97f4a7c15;
}

static uint64_t tsc(void)
{
	_mm_lfence();
	uint64_t now = __rdtsc();
	_mm_lfence();
	return now;
}

/* Kept out of line, as the calls into the domain are. */
__attribute__((noinline)) static int insert_all(struct table *table, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		if (insert(table, key(i), i))
			return -1;
	return 0;
}

__attribute__((noinline)) static uint64_t lookup_all(const struct table *table, uint64_t count)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t value;

		if (lookup(table, key(i), &value))
			return 0;
		sum += value;
	}
	return sum;
}

static int ascending(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static void print(const char *mark, int bits, uint64_t *rounds, int count, uint64_t operations)
{
	qsort(rounds, count, sizeof *rounds, ascending);
	printf("{\"id\":\"C7%s%d\",\"name\":\"C\",\"best\":%.3f,\"median\":%.3f,\"unit\":\"ticks\"}", mark, bits,
	       (double)rounds[0] / operations, (double)rounds[count / 2] / operations);
}

static int one_size(int bits)
{
	enum { MOST = 1024 };
	static uint64_t inserts[MOST], lookups[MOST];
	uint64_t size = (uint64_t)1 << bits, count = size / 4 * 3;
	uint64_t wanted = ((uint64_t)1 << 21) / count;
	int rounds = wanted < 2 ? 2 : wanted > MOST ? MOST : (int)wanted;
	struct table table = { .mask = size - 1 };

	/* From fresh pages, as a domain's memory is. */
	table.entries = mmap(NULL, size * sizeof *table.entries, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (table.entries == MAP_FAILED)
		return -1;
	for (int i = 0; i < rounds; i++) {
		memset(table.entries, 0, size * sizeof *table.entries);
		table.used = 0;
		uint64_t begin = tsc();
		int failed = insert_all(&table, count);
		uint64_t filled = tsc();
		uint64_t sum = lookup_all(&table, count);
		uint64_t found = tsc();

		if (failed || table.used != count || sum != count * (count - 1) / 2)
			return -1;
		inserts[i] = filled - begin;
		lookups[i] = found - filled;
	}
	munmap(table.entries, size * sizeof *table.entries);
	print("i", bits, inserts, rounds, count);
	printf(",");
	print("l", bits, lookups, rounds, count);
	return 0;
}

int main(int argc, char **argv)
{
	cpu_set_t set;

	if (argc != 3)
		return 2;
	CPU_ZERO(&set);
	CPU_SET(atoi(argv[1]), &set);
	if (sched_setaffinity(0, sizeof set, &set))
		return 1;
	uint64_t memory = strtoull(argv[2], NULL, 10) << 20;
	printf("[");
	for (int bits = 12; bits <= 26 && (uint64_t)16 << bits <= memory; bits += 2) {
		if (bits > 12)
			printf(",");
		if (one_size(bits))
			return 1;
	}
	printf("]\n");
	return 0;
}
